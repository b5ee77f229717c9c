"""Query signatures: what a step's query computes, and what a change of it means for an existing checkpoint."""
