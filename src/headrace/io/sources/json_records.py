"""Parse JSON records strictly: each one has its fields, or is marked as malformed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.config.models import Setting
from headrace.expectations.verdict import MALFORMED, POSITION, RAW
from headrace.spark.columns import quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

CORRUPT, END = "_corrupt_record", "_end"
LATE = "_headrace_late"
OURS = ("columnnameofcorruptrecord", "encoding", "charset", "linesep", "multiline")  # not for from_json
NOT_DATA = {"value", RAW, POSITION, MALFORMED, LATE}


def parse_json(
    records: DataFrame,
    schema: StructType,
    options: Mapping[str, Setting],
    *,
    late: StructType | None = None,
    whole: bool = False,
) -> DataFrame:
    """Parse the column `value` of decoded records, one object each; other columns are passed on.

    The object is parsed inside a list with a field after it, because Spark 4.2.0 ignores what follows an object.
    A whole file may be a list of objects: if one cannot be parsed, the file is quarantined as one record.
    The column LATE may hold another object with fields of `late`, which win over those of the record.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, IntegerType, StringType, StructType

    wrapped = StructType().add("r", ArrayType(schema)).add(END, IntegerType()).add(CORRUPT, StringType())
    value = F.col("value")
    if whole:
        value = F.regexp_replace(value, r"\A\x{feff}", "")  # Spark removes it only from files that it splits into lines
        inside = F.regexp_replace(value, r"\A\s*\[|\]\s*\z", "")
        value = F.when(value.rlike(r"(?s)\A\s*\[.*\]\s*\z"), inside).otherwise(value)
    end = F.lit(f'],"{END}":1}}')
    if late:
        wrapped = wrapped.add("late", late)
        end = F.when(F.isnull(LATE), end).otherwise(F.concat(F.lit(f'],"{END}":1,"late":'), LATE, F.lit("}")))
    text = F.concat(F.lit('{"r":['), value, end)
    strict = {"allowNonNumericNumbers": "false", "allowSingleQuotes": "false"}
    given = {key: str(value) for key, value in options.items() if key.lower() not in OURS}
    parse = F.from_json(text, wrapped, {**strict, **given, "columnNameOfCorruptRecord": CORRUPT})
    others = [quote_name(name) for name in records.columns if name not in NOT_DATA]
    parsed = records.select(*others, RAW, POSITION, MALFORMED, parse.alias("_parsed"))
    malformed = F.col(MALFORMED) | F.col(f"_parsed.{CORRUPT}").isNotNull() | F.col(f"_parsed.{END}").isNull()
    if whole:
        parsed = parsed.where(malformed | (F.size("_parsed.r") > 0))
        record = F.explode_outer("_parsed.r")
    else:
        malformed = malformed | F.coalesce(F.size("_parsed.r") != 1, F.lit(True))
        record = F.get("_parsed.r", F.lit(0))
    folders = [F.col("_parsed.late").alias(LATE)] if late else []
    parsed = parsed.select(*others, *folders, RAW, POSITION, record.alias("_record"), malformed.alias(MALFORMED))
    malformed = F.col(MALFORMED) | F.col("_record").isNull()
    fields = {name: F.col(f"_record.{quote_name(name)}") for name in schema.names}
    for name in late.names if late else []:
        fields[name] = F.coalesce(F.col(f"{LATE}.{quote_name(name)}"), fields[name])
    return parsed.select(
        *[field.alias(name) for name, field in fields.items()], *others, RAW, POSITION, malformed.alias(MALFORMED)
    )
