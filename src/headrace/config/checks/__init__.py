"""What no single value can tell: rules between keys, steps, files and places."""
