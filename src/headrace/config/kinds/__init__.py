"""Models of the kinds of sources, sinks and expectations, and the registries that list them.

The model of each kind of source or sink names the module that implements this kind in Spark. `sources.SOURCES` and
`sinks.SINKS` find the models by the names of their modules (`*_source`, `*_sink`). Every other list of kinds is derived
from these two and `expectation.EXPECTATIONS`.
"""
