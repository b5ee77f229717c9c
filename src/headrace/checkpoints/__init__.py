"""Checkpoints: their directories, the lock on them, and requests to stop a run."""
