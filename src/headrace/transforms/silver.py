"""Transforms for silver steps: enriching clean rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

__all__ = ["join_static"]


def join_static(
    rows: DataFrame,
    /,
    *,
    keys: list[str] | Mapping[str, list[str]],
    how: Literal["left", "inner"] = "left",
    **dimensions: DataFrame,
) -> DataFrame:
    """Join a stream with static tables: add the columns of each dimension to the rows with equal key columns.

    `dimensions` are the static inputs by name. `keys` is one list of key columns for every dimension, or a mapping from
    the name of each dimension to its list. Key columns have the same names in the stream and in the dimension. Rows
    without a match get nulls if `how` is "left", and are dropped if it is "inner". A null key matches nothing.
    If a key occurs twice in a dimension, each row of the stream with this key is duplicated.
    """
    if how not in ("left", "inner"):
        raise ValueError(f"join_static: how must be 'left' or 'inner', not {how!r}")
    if not dimensions:
        raise ValueError("join_static: there is no dimension to join; add at least one static input")
    joined = rows
    for name, dimension_keys in _keys_by_dimension(keys, list(dimensions)).items():
        joined = _join(joined, dimensions[name], name, dimension_keys, how)
    return joined


def _keys_by_dimension(keys: list[str] | Mapping[str, list[str]], dimensions: list[str]) -> dict[str, list[str]]:
    by_name = dict(keys) if isinstance(keys, Mapping) else dict.fromkeys(dimensions, keys)
    if by_name.keys() != set(dimensions):
        raise ValueError(f"join_static: 'keys' names {list(by_name)}, but the dimensions are {dimensions}")
    for name, columns in by_name.items():
        if isinstance(columns, str) or not columns:
            raise ValueError(
                f"join_static: keys of {name!r} must be a list of one or more column names, not {columns!r}"
            )
    return by_name


def _join(rows: DataFrame, dimension: DataFrame, name: str, keys: list[str], how: str) -> DataFrame:
    for side, columns in (("the stream", rows.columns), (f"dimension {name!r}", dimension.columns)):
        if unknown := [key for key in keys if key not in columns]:
            raise ValueError(
                f"join_static: 'keys' names unknown columns {unknown}; the columns of {side} are {columns}"
            )
    added_columns = [column for column in dimension.columns if column not in keys]
    if conflicting := [column for column in added_columns if column in rows.columns]:
        raise ValueError(
            f"join_static: dimension {name!r} has columns {conflicting} that the stream already has; "
            "rename or drop them in the step that writes the dimension"
        )
    # Spark's join moves the key columns to the front. Keep the order of the stream's columns instead.
    ordered_columns = [F.col(f"`{column}`") for column in (*rows.columns, *added_columns)]
    return rows.join(dimension, keys, how).select(ordered_columns)
