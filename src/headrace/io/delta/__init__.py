"""Delta tables: reading, appending and merging with transaction ids."""
