"""Checkpoints: their directories, files, generations and locks, their relation to tables, requests to stop a run."""
