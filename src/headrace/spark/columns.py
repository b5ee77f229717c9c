"""Column names: quoting them, and checking that a DataFrame has them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace.config.locations import closest_match
from headrace.errors import ConfigurationError, Problem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def quote_name(column: str) -> str:
    """The name of a column so that Spark takes it for what it is: one with a dot is no field of another."""
    return "`" + column.replace("`", "``") + "`"


def require_columns(frame: DataFrame, what: str, wanted: Iterable[str], *, whole: bool = False) -> None:
    """Raises all columns that the frame lacks; of `person.name` it has to have `person`, or with `whole` all of it."""
    known = {name.lower() for name in frame.columns}

    def is_known(column: str) -> bool:
        part = column.partition(".")[0].strip("`").lower()
        return column.lower() in known if whole else bool({part, column.strip("`").lower()} & known)

    missing = [column for column in wanted if not is_known(column)]
    if missing:
        raise ConfigurationError.of(
            Problem("", f"{what} names a column {column!r} that is not there", closest_match(column, frame.columns))
            for column in dict.fromkeys(missing)
        )
