"""Rules on rows: the checks of each row, and the verdict column that carries their results."""
