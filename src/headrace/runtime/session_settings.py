"""Apply a step's settings to the session while the step's query is prepared or started."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headrace.config.models import Setting, Step
from headrace.errors import ConfigurationError, one_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
