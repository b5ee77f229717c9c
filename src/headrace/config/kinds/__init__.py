"""Models of the kinds of sources, sinks and expectations, and the registries that list them.

The model of each kind of source or sink names the module that implements this kind in Spark. Every other list of kinds
is derived from `sources.SOURCES`, `sinks.SINKS` and `expectation.EXPECTATIONS`.
"""
