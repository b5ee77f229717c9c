"""Run a pipeline: prepare its steps, supervise their queries, record events."""
