"""Parse JSON records strictly: a record is malformed unless it is exactly one object with the fields of the schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.config.models import Setting
from headrace.expectations.verdict import MALFORMED, POSITION, RAW
from headrace.spark.columns import quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

CORRUPT = "_corrupt_record"  # the column in which Spark's readers put the text of a malformed record
END = "_end"  # the field after the object of a record; it is missing if the object does not end where it should
FOLDER_VALUES = "_headrace_folder_values"  # the values of partition folders, as a JSON object
# Options of a source that are not passed to from_json, because Headrace itself applies them.
HANDLED_OPTIONS = ("columnnameofcorruptrecord", "encoding", "charset", "linesep", "multiline")
# The columns of records that `parse_json` takes as its input.
USED_COLUMNS = {"value", RAW, POSITION, MALFORMED, FOLDER_VALUES}


def parse_json(
    records: DataFrame,
    schema: StructType,
    options: Mapping[str, Setting],
    *,
    folder_fields: StructType | None = None,
    is_whole_file: bool = False,
) -> DataFrame:
    """Parse the column `value` of decoded records, which has one object per record. Keep columns not in USED_COLUMNS.

    The object is parsed inside a list, with another field after the list. Otherwise Spark 4.2.0 would ignore text that
    follows the object.
    If `is_whole_file`, a record is a file: one object, or a list of objects, each of which becomes a row. If an object
    cannot be parsed, the whole file is one malformed record.
    If `folder_fields` are given, the column FOLDER_VALUES has a JSON object with these fields, or null. Values in this
    object replace the values in the record.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, IntegerType, StringType, StructType

    wrapper_schema = StructType().add("r", ArrayType(schema)).add(END, IntegerType()).add(CORRUPT, StringType())
    value = F.col("value")
    if is_whole_file:
        # Spark removes a byte order mark only from files that it splits into lines.
        value = F.regexp_replace(value, r"\A\x{feff}", "")
        without_brackets = F.regexp_replace(value, r"\A\s*\[|\]\s*\z", "")
        value = F.when(value.rlike(r"(?s)\A\s*\[.*\]\s*\z"), without_brackets).otherwise(value)
    end = F.lit(f'],"{END}":1}}')
    if folder_fields:
        wrapper_schema = wrapper_schema.add("folders", folder_fields)
        end_with_folders = F.concat(F.lit(f'],"{END}":1,"folders":'), FOLDER_VALUES, F.lit("}"))
        end = F.when(F.isnull(FOLDER_VALUES), end).otherwise(end_with_folders)
    text = F.concat(F.lit('{"r":['), value, end)
    strict = {"allowNonNumericNumbers": "false", "allowSingleQuotes": "false"}
    user_options = {key: str(value) for key, value in options.items() if key.lower() not in HANDLED_OPTIONS}
    parsed_wrapper = F.from_json(text, wrapper_schema, {**strict, **user_options, "columnNameOfCorruptRecord": CORRUPT})
    others = [quote_name(name) for name in records.columns if name not in USED_COLUMNS]
    parsed = records.select(*others, RAW, POSITION, MALFORMED, parsed_wrapper.alias("_parsed"))
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
