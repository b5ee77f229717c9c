"""Quote column names, and check that a DataFrame has them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace.config.locations import fix_for_unknown_name
from headrace.errors import ConfigurationError, Problem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def quote_name(column: str) -> str:
    """Return the column name in backticks, so that Spark does not interpret a dot in it as access to a field."""
    return "`" + column.replace("`", "``") + "`"


def require_columns(frame: DataFrame, what: str, columns: Iterable[str], *, exact: bool = False) -> None:
    """Raise ConfigurationError with all columns that the DataFrame lacks.

    `what` is the setting that names the columns, for messages. Upper and lower case are the same. If `exact` is true,
    `columns` are whole names. Otherwise they may be in backticks, and may name a field: `person.name` is known if there
    is a column `person`.
    """
    known = {name.lower() for name in frame.columns}

    def is_known(column: str) -> bool:
        top_level = column.partition(".")[0].strip("`").lower()
        return column.lower() in known if exact else bool({top_level, column.strip("`").lower()} & known)

    missing = [column for column in columns if not is_known(column)]
    if missing:
        raise ConfigurationError.of(
            Problem("", f"{what} names unknown column {column!r}", fix_for_unknown_name(column, frame.columns))
            for column in dict.fromkeys(missing)
        )
