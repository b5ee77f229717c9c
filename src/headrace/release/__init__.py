"""Build releases: wheels, configuration and a manifest, and new bundles."""
