"""Checks that need more than one value: rules between keys, steps, files and locations."""
