"""Inspect pipelines, tables and the machine without changing them."""
