"""Parse JSON records strictly: a record that is not exactly one object of the schema's fields is malformed."""

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
FOLDER_VALUES = "_headrace_folder_values"  # the values of partition folders, as a JSON object
# Options of a source that are not passed to from_json, because Headrace itself applies them.
HANDLED_OPTIONS = ("columnnameofcorruptrecord", "encoding", "charset", "linesep", "multiline")
NOT_DATA = {"value", RAW, POSITION, MALFORMED, FOLDER_VALUES}


def parse_json(
    records: DataFrame,
    schema: StructType,
    options: Mapping[str, Setting],
    *,
    folder_fields: StructType | None = None,
    is_whole_file: bool = False,
) -> DataFrame:
    """Parse the column `value` of decoded records, which has one object per record. Keep other columns.

    The object is parsed inside a list, with another field after the list. Otherwise Spark 4.2.0 would ignore text that
    follows the object.
    If a record is a whole file, it may also be a list of objects; if one of them cannot be parsed, the file is
    quarantined as one record.
    If `folder_fields` are given, the column FOLDER_VALUES has an object with these fields, or null. Its values replace
    those of the record.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, IntegerType, StringType, StructType

    wrapped = StructType().add("r", ArrayType(schema)).add(END, IntegerType()).add(CORRUPT, StringType())
    value = F.col("value")
    if is_whole_file:
        # Spark removes a byte order mark only from files that it splits into lines.
        value = F.regexp_replace(value, r"\A\x{feff}", "")
        without_brackets = F.regexp_replace(value, r"\A\s*\[|\]\s*\z", "")
        value = F.when(value.rlike(r"(?s)\A\s*\[.*\]\s*\z"), without_brackets).otherwise(value)
    end = F.lit(f'],"{END}":1}}')
    if folder_fields:
        wrapped = wrapped.add("folders", folder_fields)
        end_with_folders = F.concat(F.lit(f'],"{END}":1,"folders":'), FOLDER_VALUES, F.lit("}"))
        end = F.when(F.isnull(FOLDER_VALUES), end).otherwise(end_with_folders)
    text = F.concat(F.lit('{"r":['), value, end)
    strict = {"allowNonNumericNumbers": "false", "allowSingleQuotes": "false"}
    given = {key: str(value) for key, value in options.items() if key.lower() not in HANDLED_OPTIONS}
    parse = F.from_json(text, wrapped, {**strict, **given, "columnNameOfCorruptRecord": CORRUPT})
    others = [quote_name(name) for name in records.columns if name not in NOT_DATA]
    parsed = records.select(*others, RAW, POSITION, MALFORMED, parse.alias("_parsed"))
    malformed = F.col(MALFORMED) | F.col(f"_parsed.{CORRUPT}").isNotNull() | F.col(f"_parsed.{END}").isNull()
    if is_whole_file:
        parsed = parsed.where(malformed | (F.size("_parsed.r") > 0))
        record = F.explode_outer("_parsed.r")
    else:
        malformed = malformed | F.coalesce(F.size("_parsed.r") != 1, F.lit(True))
        record = F.get("_parsed.r", F.lit(0))
    folders = [F.col("_parsed.folders").alias(FOLDER_VALUES)] if folder_fields else []
    parsed = parsed.select(*others, *folders, RAW, POSITION, record.alias("_record"), malformed.alias(MALFORMED))
    malformed = F.col(MALFORMED) | F.col("_record").isNull()
    fields = {name: F.col(f"_record.{quote_name(name)}") for name in schema.names}
    for name in folder_fields.names if folder_fields else []:
        fields[name] = F.coalesce(F.col(f"{FOLDER_VALUES}.{quote_name(name)}"), fields[name])
    return parsed.select(
        *[field.alias(name) for name, field in fields.items()], *others, RAW, POSITION, malformed.alias(MALFORMED)
    )
