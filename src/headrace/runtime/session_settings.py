"""Apply a step's settings to the session while the step's query is prepared or started."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headrace.config.models import Setting, Step
from headrace.errors import ConfigurationError, one_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Where Spark and Delta list the settings that they know, and the prefixes of settings there that they do not list.
LISTED = ("spark.sql.", "spark.databricks.delta.")
NOT_LISTED = (
    "spark.sql.catalog.",
    "spark.sql.streaming.stateStore.rocksdb.",
    "spark.databricks.delta.properties.defaults.",
)
SIMILARITY = 0.9  # of an unknown setting and the one that is probably meant


def misspelled_settings(spark: SparkSession, settings: Iterable[str]) -> list[str]:
    """Return messages about settings that Spark does not know, but whose names resemble one that it knows.

    Spark ignores unknown settings.
    """
    candidates = [key for key in settings if key.startswith(LISTED) and not key.startswith(NOT_LISTED)]
    unknown = [key for key in candidates if not spark.conf.isModifiable(key)]  # or static
    if not unknown:
        return []
    known = {row["key"] for row in spark.sql("SET -v").collect()}
    messages = []
    for key in unknown:
        similar = difflib.get_close_matches(key, known, 1, SIMILARITY) if key not in known else []
        if similar:
            messages.append(f"Spark has no setting {key} and ignores it; did you mean {similar[0]}?")
    return messages


def frozen_settings(spark: SparkSession, step: Step, restored: Mapping[str, str]) -> list[str]:
    """Return messages about settings that have no effect, because Spark restores other values from the checkpoint."""
    messages = []
    for key, value in sorted(restored.items()):
        current = step.settings.get(key, spark.conf.get(key, None))
        if current is not None and _as_text(current) != value:
            effect = f"{_as_text(current)} has no effect before the step is reset"
            messages.append(f"{key} stays {value}, as in the checkpoint; {effect}")
    return messages


def _as_text(value: Setting) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@contextmanager
def session_settings(spark: SparkSession, settings: Mapping[str, Setting]) -> Iterator[None]:
    """Set these settings in the session, and restore the previous values at the end of the block.

    A query that is started in the block keeps the settings. Raise ConfigurationError if Spark rejects a setting.
    """
    previous: dict[str, str | None] = {}
    try:
        for key, value in settings.items():
            before = spark.conf.get(key, None)
            _set(spark, key, value)
            previous[key] = before
        yield
    finally:
        for key, before in previous.items():
            if before is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, before)


def _set(spark: SparkSession, key: str, value: Setting) -> None:
    try:
        spark.conf.set(key, str(value))
    except Exception as error:
        raise ConfigurationError(
            f"setting {key} cannot be set to {value}: {one_line(error)}",
            fix="correct it, or move it to the environment's settings if it belongs to the whole session",
        ) from error
