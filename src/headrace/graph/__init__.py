"""The order of a bundle's steps, and the Python functions that the steps name. This package does not import Spark."""
