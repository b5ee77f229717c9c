"""The steps of a bundle: their order, and the Python functions that they name. Nothing here imports Spark."""
