"""Apply a step's settings to the session while its query is prepared and started."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headrace.config.models import Setting
from headrace.errors import ConfigurationError, one_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def session_settings(spark: SparkSession, chosen: Mapping[str, Setting]) -> Iterator[None]:
    """The session with a step's own settings: a query takes them along when it starts."""
    before: dict[str, str | None] = {}
    try:
        for key, wanted in chosen.items():
            was = spark.conf.get(key, None)
            _set(spark, key, wanted)
            before[key] = was
        yield
    finally:
        for key, value in before.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)


def _set(spark: SparkSession, key: str, wanted: Setting) -> None:
    try:
        spark.conf.set(key, str(wanted))
    except Exception as error:
        raise ConfigurationError(
            f"setting {key} cannot be {wanted}: {one_line(error)}",
            fix="correct it, or give it under the environment's settings if it is one of the whole session",
        ) from error
