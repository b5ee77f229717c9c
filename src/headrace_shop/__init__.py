"""The reference bundle: orders, customers and revenue of a shop."""
