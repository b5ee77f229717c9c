"""What a step remembers between runs: where it lies, and who may use it."""
