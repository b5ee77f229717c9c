"""Deploy releases: desired jobs, the plan, applying it, and the state that records what was done."""
