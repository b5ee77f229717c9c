"""Load a bundle's YAML files as frozen values, and report each problem with its file and line."""
