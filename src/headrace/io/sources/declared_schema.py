"""Resolve the schema that an input declares, as an import path or in DDL syntax."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.config.models import Read
from headrace.errors import ConfigurationError, one_line
from headrace.graph.resolve import resolve
from headrace.spark.ddl import parse_ddl

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def declared_schema(read: Read) -> StructType | None:
    """Return the declared schema, or None if the input declares none. Raise ConfigurationError for an invalid schema.

    A schema in DDL needs an active Spark session.
    """
    from pyspark.sql.types import StructType

    if read.schema_ is None:
        return None
    if read.schema_path is not None:
        schema = resolve(read.schema_path)
        if not isinstance(schema, StructType):
            raise ConfigurationError(
                f"{read.schema_} is a {type(schema).__name__}, not a StructType",
                fix="name a StructType, or write DDL",
            )
        return schema
    try:
        return parse_ddl(read.schema_)
    except Exception as error:
        raise ConfigurationError(
            f"schema {read.schema_!r} is not DDL: {one_line(error)}",
            fix="write it like 'id STRING, n INT'",
        ) from error
