"""Decode records to text, so that tables and quarantine tables contain only valid UTF-8.

Spark and Delta store any bytes as a string, but other readers cannot open a table that contains invalid UTF-8.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from headrace.expectations.verdict import MALFORMED, RAW
from headrace.spark.columns import quote_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

BYTE_ORDER_MARK = "\ufeff"
REPLACEMENT = "\ufffd"  # the character that replaces invalid bytes


def decode(records: DataFrame, column: str, encoding: str | None = None) -> DataFrame:
    """Decode a column of records to text. Add the columns RAW, the same text, and MALFORMED, true for invalid bytes.

    Without `encoding`, the records are UTF-8. Invalid bytes stay in the text until `with_valid_text` is called.
    """
    from pyspark.sql import functions as F

    stored = F.col(quote_name(column))
    text = stored.cast("string")
    if encoding is None:
        valid = F.is_valid_utf8(text)
    else:
        # decode() fails on invalid bytes, and there is no try_decode. With try_to_binary around it, the result is null
        # (Spark 4.2.0).
        decoded = F.try_to_binary(F.decode(stored.cast("binary"), encoding), F.lit("utf-8")).cast("string")
        valid = decoded.isNotNull() | stored.isNull()
        text = F.coalesce(F.regexp_replace(decoded, rf"\A{BYTE_ORDER_MARK}", ""), text)
    return records.withColumns({column: text, RAW: text, MALFORMED: F.coalesce(~valid, F.lit(False))})


def with_valid_text(records: DataFrame, *columns: str) -> DataFrame:
    """Replace invalid bytes by U+FFFD in these columns of malformed records."""
    from pyspark.sql import functions as F

    malformed = F.col(MALFORMED)
    valid_texts = {}
    for column in columns:
        text = F.col(quote_name(column))
        valid_texts[column] = F.when(malformed, F.make_valid_utf8(text)).otherwise(text)
    return records.withColumns(valid_texts)


def has_replacement(schema: StructType) -> Column:
    """Return a column that is true for rows with U+FFFD in a text of these columns, also within arrays and structs.

    Spark's own readers replace invalid bytes by U+FFFD.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType

    replaced = [F.lit(False)]
    for field in schema.fields:
        value = F.col(quote_name(field.name))
        if isinstance(field.dataType, StringType):
            replaced.append(F.coalesce(value.contains(REPLACEMENT), F.lit(False)))
        elif isinstance(field.dataType, ArrayType | MapType | StructType):
            replaced.append(F.coalesce(F.to_json(value).contains(REPLACEMENT), F.lit(False)))
    return reduce(or_, replaced)
