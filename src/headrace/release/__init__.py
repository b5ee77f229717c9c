"""Build and verify releases (wheels, configuration and a manifest), and create bundles."""
