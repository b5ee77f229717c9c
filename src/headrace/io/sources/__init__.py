"""Open inputs: sources and tables, as DataFrames."""
