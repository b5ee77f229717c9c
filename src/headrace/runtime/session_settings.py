"""Apply a step's settings to the session while the step's query is prepared or started."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headrace.config.models import Setting
from headrace.errors import ConfigurationError, one_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
