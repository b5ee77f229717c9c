"""The bundle's configuration: YAML files in, frozen values out, every problem with its line."""
