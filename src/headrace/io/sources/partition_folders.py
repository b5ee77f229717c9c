"""Partition folders: folders such as `country=DE`, which add a column to the rows of the files in them.

Spark looks for partition folders when a stream is opened. Spark also reads folders that appear later, but assigns their
values to the last columns of the schema by position (4.2.0). The result is correct only if the folders of a path have
the names of these columns, in the same order.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.config.models import FileSource, Setting
from headrace.config.spark_options import is_true, option
from headrace.expectations.verdict import POSITION

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructField, StructType

PROBE_COLUMN = "_headrace_probe"
NULL_VALUE = "__HIVE_DEFAULT_PARTITION__"  # the value of a folder whose rows have null
# The scheme and host of a URL. The quantifiers are possessive, so that a host never counts as a folder.
SCHEME = r"[A-Za-z][\w+.-]*+:(?://[^/]*+)?+"
ALTERNATIVES = re.compile(r"\{([^,{}]*)[^{}]*\}")  # "{a,b}" in a glob pattern
MAX_LEVELS = 8  # how many levels of folders may appear later; for JSON, there is no limit
# The value of a folder in a URL, without characters that JSON has to escape, and without Hive's escapes: Hive writes a
# special character as %XX, which is %25XX in a URL.
SAFE_VALUE = r"(?:[^/%]|%(?!25|22|5C|[01]))*"
TIME_FORMATS = ("dateFormat", "timestampFormat", "timestampNTZFormat")


@dataclass(frozen=True)
class Partitions:
    """The partition folders of a file source."""

    path: str  # of the source; it may be a glob pattern
    present: tuple[StructField, ...]  # the columns of the partition folders that exist when the stream is opened
    is_case_sensitive: bool = False  # whether Spark compares column names by case
    is_ignored: bool = False  # whether Spark ignores partition folders, because the user has set recursiveFileLookup

    @property
    def may_appear(self) -> bool:
        """Whether folders of new columns may appear later. Spark accepts none if partition folders exist already."""
        return not self.present and not self.is_ignored

    def declared(self, schema: StructType) -> dict[str, str]:
        """Return the columns of the schema that folders provide, each with its name in the folders.

        The two names may differ in upper and lower case.
        """
        columns = {self._key(column): column for column in schema.names}
        folders = [field.name for field in self.present]
        return {columns[self._key(folder)]: folder for folder in folders if self._key(folder) in columns}

    def undeclared(self, schema: StructType) -> list[StructField]:
        """Return the columns of folders that the schema lacks, with the types that Spark infers for their values."""
        declared = self.declared(schema).values()
        return [field for field in self.present if field.name not in declared]

    def fields_as_text(self, schema: StructType) -> list[StructField]:
        """Return the columns of the folders. Those that the schema declares have the type string, to be cast later."""
        from pyspark.sql.types import StringType, StructField

        undeclared = self.undeclared(schema)
        return [field if field in undeclared else StructField(field.name, StringType()) for field in self.present]

    def fail_on_unreadable_folders(self, rows: DataFrame, schema: StructType) -> DataFrame:
        """Raise an error in Spark for a file in later folders whose values Spark would assign to wrong columns.

        The folders of a path must be the last columns of the schema, in order: for columns a, b, c these are
        `/c=…`, `/b=…/c=…` and `/a=…/b=…/c=…`. Return the rows unchanged if no folders of new columns may appear.
        """
        last_names: list[str] = []
        for field in reversed(schema.fields[-MAX_LEVELS:]):
            if not _fits_in_folder_name(field.dataType):
                break
            last_names.insert(0, field.name)
        folders = ""
        for name in last_names:
            folder_name = re.escape(name) if self.is_case_sensitive else f"(?i:{re.escape(name)})"
            folders = f"(?:{folders})?/{folder_name}=[^/]*" if folders else f"/{folder_name}=[^/]*"
        return self._filter_by_folders(rows, folders) if self.may_appear else rows

    def with_folder_values(self, rows: DataFrame, fields: StructType, column: str) -> DataFrame:
        """Add a column with the values of each file's folders, as a JSON object of these fields; null without folders.

        The rows were read with recursiveFileLookup. Remove the rows that Spark would not read without this option.
        """
        from pyspark.sql import functions as F

        folders = f"(?:/(?:{_any_of(fields.names)})={SAFE_VALUE})+" if fields.names else ""
        rows = self._filter_by_folders(rows, folders)
        if not folders:
            return rows.withColumn(column, F.lit(None).cast("string"))
        matched_folders = F.regexp_extract(POSITION, self._pattern(folders), 1)
        # The test for "=" is cheap. If only the file's own name has a "=", the match and the JSON object are empty.
        return rows.withColumn(column, F.when(F.contains(POSITION, F.lit("=")), _as_json(matched_folders, fields)))

    def _filter_by_folders(self, rows: DataFrame, folders: str) -> DataFrame:
        """Keep the rows of files whose folders match the pattern `folders`, and of files directly in the source's path.

        Remove the rows of files in other plain folders, which Spark would not read. Raise an error in Spark for files
        in other partition folders; if `folders` is empty, in any partition folders.
        """
        from pyspark.sql import functions as F

        message = "restart the step, because it cannot read partition folders that appeared after its start: "
        keep = F.when(self._is_direct(), F.lit(True))
        if folders:
            keep = keep.when(F.rlike(POSITION, F.lit(self._pattern(folders))), F.lit(True))
        keep = keep.when(F.rlike(POSITION, F.lit(self._pattern(""))), F.lit(False))
        return rows.where(keep.otherwise(F.raise_error(F.concat(F.lit(message), POSITION))))

    def _key(self, column: str) -> str:
        """Return the text by which Spark compares column names."""
        return column if self.is_case_sensitive else column.lower()

    def _depth(self) -> int:
        """Return how many parts the source's path has, taking the first of alternatives in braces."""
        path = ALTERNATIVES.sub(r"\1", re.sub(rf"\A{SCHEME}", "", self.path))
        return sum(bool(part) for part in posixpath.normpath(path).split("/"))

    def _pattern(self, folders: str) -> str:
        """Return a regular expression for the paths of files with these partition folders.

        If `folders` is empty, the paths have no partition folders. Plain folders may precede and follow the partition
        folders, which are the first group of the match.
        """
        return rf"^(?:{SCHEME})?+(?:/[^/]*+){{{self._depth()}}}(?:/[^/=]*)*({folders})(?:/[^/=]*)*/[^/]*$"

    def _is_direct(self) -> Column:
        """Return a column that is true for files directly in the source's path. The test is cheap: it runs per row."""
        from pyspark.sql import functions as F

        # Such a file's path has a slash for each part of the source's path, one for the file, and two more in "://". If
        # there are fewer slashes than `limit`, substring_index returns the whole path.
        limit_without_host = self._depth() + 2
        has_host = F.contains(F.col(POSITION), F.lit("://"))
        limit = F.when(has_host, limit_without_host + 2).otherwise(limit_without_host)
        start = F.call_function("substring_index", F.col(POSITION), F.lit("/"), limit)
        return start == F.col(POSITION)


def partitions_of(spark: SparkSession, source: FileSource) -> Partitions:
    """Return the partition folders of a source that exist now.

    Spark adds their columns to the schema of a stream, so a stream with one other column is opened to find them.
    """
    probe = spark.readStream.options(**source.options).format("json").schema(f"{PROBE_COLUMN} STRING").load(source.path)
    present = tuple(field for field in probe.schema.fields if field.name != PROBE_COLUMN)
    is_case_sensitive = spark.conf.get("spark.sql.caseSensitive", "false") == "true"
    return Partitions(source.path, present, is_case_sensitive, is_true(source.options, "recursiveFileLookup"))


def fields_from_later_folders(schema: StructType, options: Mapping[str, Setting]) -> StructType:
    """Return the columns of JSON records whose values may come from folders that appear later.

    These are columns whose values have the same text in a folder as in JSON. Dates and times do not if the user has set
    a format for them.
    """
    from pyspark.sql.types import BinaryType, DatetimeType, StructType

    has_own_time_format = option(options, *TIME_FORMATS) is not None
    excluded = (BinaryType, DatetimeType) if has_own_time_format else (BinaryType,)
    fields = [field for field in schema.fields if _fits_in_folder_name(field.dataType)]
    return StructType([field for field in fields if not isinstance(field.dataType, excluded)])


def cast_folders(texts: Mapping[str, Column], schema: StructType) -> tuple[dict[str, Column], Column]:
    """Cast the values of folders, which are text, to the types in the schema.

    Return the values by column, and a column that is true for rows with a value that does not fit its type.
    """
    from pyspark.sql import functions as F

    values = dict(texts)
    has_misfit = F.lit(False)
    for name, text in texts.items():
        if not _is_text(schema[name].dataType):
            values[name] = text.try_cast(schema[name].dataType)
            has_misfit = has_misfit | (text.isNotNull() & values[name].isNull())
    return values, has_misfit


def _as_json(folders: Column, fields: StructType) -> Column:
    """Return folders as a JSON object: for `/n=05/country=DE`, it is {"n":5,"country":"DE"}."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import BooleanType, NumericType

    numbers = _any_of(field.name for field in fields.fields if isinstance(field.dataType, NumericType))
    booleans = _any_of(field.name for field in fields.fields if isinstance(field.dataType, BooleanType))
    # url_decode turns "+" into a space, but the path is a URI, in which "+" is a plus sign.
    text = F.url_decode(F.replace(folders, F.lit("+"), F.lit("%2B")))
    # Replace "/name=value" by '/,"name":value': numbers and booleans without quotes, then all others with quotes.
    unquoted = rf"/({numbers})=(-?)0*(\d[^/]*)|/({booleans})=(true|false)"
    text = F.regexp_replace(text, unquoted, '/,"$1$4":$2$3$5')
    text = F.regexp_replace(text, "/([^/=,][^/=]*)=([^/]*)", '/,"$1":"$2"')
    text = F.replace(F.replace(text, F.lit(f'"{NULL_VALUE}"'), F.lit("null")), F.lit("/"), F.lit(""))
    without_first_comma = F.substring(text, 2, 1 << 30)
    return F.concat(F.lit("{"), without_first_comma, F.lit("}"))


def _any_of(names: Iterable[str]) -> str:
    """Return a regular expression that matches one of these names; it matches nothing if there are none."""
    return "|".join(map(re.escape, names)) or "(?!)"


def _is_text(data_type: DataType) -> bool:
    from pyspark.sql.types import CharType, StringType, VarcharType

    return isinstance(data_type, StringType | CharType | VarcharType)


def _fits_in_folder_name(data_type: DataType) -> bool:
    """Return whether the name of a folder can have values of this type."""
    from pyspark.sql.types import AtomicType, VariantType

    return isinstance(data_type, AtomicType) and not isinstance(data_type, VariantType)
