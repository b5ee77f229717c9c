"""Write results: Spark's own sinks, and the batch writer that writes each batch exactly once."""
