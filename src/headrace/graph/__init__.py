"""The order of a bundle's steps, and the Python functions that they name. Nothing here imports Spark."""
