"""Models of the kinds of sources, sinks and expectations, and the registries that list them.

Each model names the module that implements it in Spark. Every other list of kinds is derived from `sources.SOURCES`,
`sinks.SINKS` and `expectation.EXPECTATIONS`.
"""
