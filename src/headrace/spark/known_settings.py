"""Find misspelt names of Spark settings. Spark accepts every name, and ignores those that it does not know."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIMILARITY = 0.9  # users also set names that Spark does not know, such as those of plugins; most are less similar


def misspelt_settings(spark: SparkSession, names: Iterable[str]) -> Iterator[str]:
    """Yield a message for each setting that Spark does not know, if it knows a setting with a similar name.

    Yield nothing if the JVM, or Spark's list of settings, is not accessible.
    """
    candidates = [name for name in names if name.startswith("spark.")]
    if not candidates:
        return
    try:
        jvm: Any = spark._jvm
        registry = getattr(getattr(jvm, "org.apache.spark.internal.config.ConfigEntry$"), "MODULE$").knownConfigs()
        unknown = [name for name in candidates if not registry.containsKey(name)]
        known = jvm.java.lang.String.join("\n", registry.keySet()).split("\n") if unknown else []
    except Exception:  # the registry is internal to Spark (4.2.0)
        return
    for name in unknown:
        for similar in difflib.get_close_matches(name, known, n=1, cutoff=SIMILARITY):
            yield f"Spark has no setting {name}; did you mean {similar}?"
