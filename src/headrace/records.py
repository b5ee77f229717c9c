"""Parses JSON records so that nothing is overlooked: each has its fields, or is told to be malformed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.quality import MALFORMED, POSITION, RAW
from headrace.rules import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

CORRUPT, END = "_corrupt_record", "_end"
NOT_DATA = {"value", RAW, POSITION}


def parse_json(lines: DataFrame, schema: StructType, options: dict[str, Any], *, whole: bool = False) -> DataFrame:
    """One object a line, parsed inside a list with a field after it: Spark 4.2.0 overlooks what follows an object.

    Of a whole file, it may be a list of objects: if one cannot be read, the file is refused as one record.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, IntegerType, StringType, StructType

    wrapped = StructType().add("r", ArrayType(schema)).add(END, IntegerType()).add(CORRUPT, StringType())
    value = F.col("value")
    if whole:
        inside = F.regexp_replace(value, r"\A\s*\[|\]\s*\z", "")
        value = F.when(value.rlike(r"(?s)\A\s*\[.*\]\s*\z"), inside).otherwise(value)
    text = F.concat(F.lit('{"r":['), value, F.lit(f'],"{END}":1}}'))
    strict = {
        "columnNameOfCorruptRecord": CORRUPT,
        "allowNonNumericNumbers": "false",
        "allowSingleQuotes": "false",
    }
    parse = F.from_json(text, wrapped, {**strict, **{key: str(value) for key, value in options.items()}})
    partitions = [name for name in lines.columns if name not in NOT_DATA]
    parsed = lines.select(*map(quoted, partitions), RAW, POSITION, parse.alias("_parsed"))
    malformed = F.col(f"_parsed.{CORRUPT}").isNotNull() | F.col(f"_parsed.{END}").isNull()
    if whole:
        parsed = parsed.where(malformed | (F.size("_parsed.r") > 0))
        record = F.explode_outer("_parsed.r")
    else:
        malformed = malformed | F.coalesce(F.size("_parsed.r") != 1, F.lit(True))
        record = F.get("_parsed.r", F.lit(0))
    parsed = parsed.select(*map(quoted, partitions), RAW, POSITION, record.alias("_record"), malformed.alias(MALFORMED))
    malformed = F.col(MALFORMED) | F.col("_record").isNull()
    # What the directory says goes before what the record says, as in Spark's own formats.
    fields = [
        (
            F.col(f"`{field.name}`").cast(field.dataType)
            if field.name in partitions
            else F.col(f"_record.`{field.name}`")
        ).alias(field.name)
        for field in schema.fields
    ]
    others = [quoted(name) for name in partitions if name not in schema.names]
    return parsed.select(*fields, *others, RAW, POSITION, malformed.alias(MALFORMED))
