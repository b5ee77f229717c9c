"""Built-in transforms: plain functions on DataFrames, usable without Headrace."""
