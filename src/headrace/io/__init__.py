"""Reading inputs and writing results: one module for each kind of source and sink."""
