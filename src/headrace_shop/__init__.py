"""The reference bundle: a shop's orders, customers and revenue."""
