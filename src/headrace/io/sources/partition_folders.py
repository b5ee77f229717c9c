"""Partition folders: the columns that folders such as `country=DE` add to the rows of the files below them.

Spark looks for partition folders when a stream is opened. It reads folders that appear later too, but appends their
columns by position (4.2.0): that is right only if they are the last columns of the schema, in the order of the folders.
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

PROBE = "_headrace_probe"
NULL = "__HIVE_DEFAULT_PARTITION__"
SCHEME = r"[A-Za-z][\w+.-]*+:(?://[^/]*+)?+"  # possessive, so that a host never counts as a folder
ALTERNATIVES = re.compile(r"\{([^,{}]*)[^{}]*\}")
MOST_LEVELS = 8  # of folders that may appear later, unless the format is JSON
SAFE = r"(?:[^/%]|%(?!25|22|5C|[01]))*"  # a folder's value without Hive's escapes (%25…) and what JSON has to escape
TIME_FORMATS = ("dateFormat", "timestampFormat", "timestampNTZFormat")


@dataclass(frozen=True)
class Partitions:
    """The partition folders of a file source; `present` are the columns of those that exist when it is opened."""

    path: str
    present: tuple[StructField, ...]
    case_sensitive: bool = False
    ignored: bool = False  # by the user's own recursiveFileLookup

    @property
    def may_appear(self) -> bool:
        """Return whether folders may appear later: beside others Spark accepts no folders of other columns."""
        return not self.present and not self.ignored

    def declared(self, schema: StructType) -> dict[str, str]:
        """Return the declared columns that folders hold, each with the name that the folders have."""
        columns = {self._key(name): name for name in schema.names}
        names = [field.name for field in self.present]
        return {columns[self._key(name)]: name for name in names if self._key(name) in columns}

    def undeclared(self, schema: StructType) -> list[StructField]:
        """Return the columns that only folders have, with the types that Spark infers for their values."""
        declared = self.declared(schema).values()
        return [field for field in self.present if field.name not in declared]

    def read_as_text(self, schema: StructType) -> list[StructField]:
        """Return the columns of the folders, with declared ones as text."""
        from pyspark.sql.types import StringType, StructField

        undeclared = self.undeclared(schema)
        return [field if field in undeclared else StructField(field.name, StringType()) for field in self.present]

    def guarded(self, rows: DataFrame, schema: StructType) -> DataFrame:
        """Stop at folders that appear later and that Spark would mistake for other columns."""
        last: list[str] = []
        for field in reversed(schema.fields[-MOST_LEVELS:]):
            if not _is_simple(field.dataType):
                break
            last.append(field.name)
        folders = ""
        for name in reversed(last):
            named = re.escape(name) if self.case_sensitive else f"(?i:{re.escape(name)})"
            folders = f"(?:{folders})?/{named}=[^/]*" if folders else f"/{named}=[^/]*"
        return self._with_folders(rows, folders) if self.may_appear else rows

    def with_late_folders(self, rows: DataFrame, late: StructType, column: str) -> DataFrame:
        """Add a column with the folders of each file as a JSON object of these fields; null where it has none.

        The rows were read recursively: files that Spark would not read are left out.
        """
        from pyspark.sql import functions as F

        folders = f"(?:/(?:{_any_of(late.names)})={SAFE})+" if late.names else ""
        rows = self._with_folders(rows, folders)
        if not folders:
            return rows.withColumn(column, F.lit(None).cast("string"))
        chain = F.regexp_extract(POSITION, self._pattern(folders), 1)
        # A cheap test: if only the name of a file has "=", the chain is empty, and so is the object.
        return rows.withColumn(column, F.when(F.contains(POSITION, F.lit("=")), _as_json(chain, late)))

    def _with_folders(self, rows: DataFrame, folders: str) -> DataFrame:
        """Keep files with such partition folders or none, leave out those in other folders, stop at the rest."""
        from pyspark.sql import functions as F

        message = "restart the step, since partition folders appeared after its start that it cannot read: "
        keep = F.when(self._is_direct(), F.lit(True))
        if folders:
            keep = keep.when(F.rlike(POSITION, F.lit(self._pattern(folders))), F.lit(True))
        keep = keep.when(F.rlike(POSITION, F.lit(self._pattern(""))), F.lit(False))
        return rows.where(keep.otherwise(F.raise_error(F.concat(F.lit(message), POSITION))))

    def _key(self, column: str) -> str:
        return column if self.case_sensitive else column.lower()

    def _depth(self) -> int:
        """Return how many parts the source's path has; of alternatives in braces the first one counts."""
        path = ALTERNATIVES.sub(r"\1", re.sub(rf"\A{SCHEME}", "", self.path))
        return sum(bool(part) for part in posixpath.normpath(path).split("/"))

    def _pattern(self, folders: str) -> str:
        """Return a pattern of the paths of files with these partition folders, which may be among plain folders."""
        return rf"^(?:{SCHEME})?+(?:/[^/]*+){{{self._depth()}}}(?:/[^/=]*)*({folders})(?:/[^/=]*)*/[^/]*$"

    def _is_direct(self) -> Column:
        """Return whether no folder is between the source's path and the file; a cheap test, made for each row."""
        from pyspark.sql import functions as F

        slashes = self._depth() + 2
        slashes_with_host = F.when(F.contains(F.col(POSITION), F.lit("://")), slashes + 2).otherwise(slashes)
        before = F.call_function("substring_index", F.col(POSITION), F.lit("/"), slashes_with_host)
        return before == F.col(POSITION)


def partitions_of(spark: SparkSession, source: FileSource) -> Partitions:
    """Return the partition folders that exist now."""
    probe = spark.readStream.options(**source.options).format("json").schema(f"{PROBE} STRING").load(source.path)
    present = tuple(field for field in probe.schema.fields if field.name != PROBE)
    case_sensitive = spark.conf.get("spark.sql.caseSensitive", "false") == "true"
    return Partitions(source.path, present, case_sensitive, is_true(source.options, "recursiveFileLookup"))


def late_fields(schema: StructType, options: Mapping[str, Setting]) -> StructType:
    """Return the columns of JSON records that may come from folders that appear later."""
    from pyspark.sql.types import BinaryType, DatetimeType, StructType

    has_own_format = option(options, *TIME_FORMATS) is not None
    others = (BinaryType, DatetimeType) if has_own_format else BinaryType
    return StructType([f for f in schema.fields if _is_simple(f.dataType) and not isinstance(f.dataType, others)])


def cast_folders(texts: Mapping[str, Column], schema: StructType) -> tuple[dict[str, Column], Column]:
    """Return the values of folders in the declared types, and whether one of them does not fit."""
    from pyspark.sql import functions as F

    values = dict(texts)
    misfits = F.lit(False)
    for name, text in texts.items():
        if not _is_text(schema[name].dataType):
            values[name] = text.try_cast(schema[name].dataType)
            misfits = misfits | (text.isNotNull() & values[name].isNull())
    return values, misfits


def _as_json(folders: Column, fields: StructType) -> Column:
    """Return `/n=05/country=DE` as {"n":5,"country":"DE"}."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import BooleanType, NumericType

    numbers = _any_of(field.name for field in fields.fields if isinstance(field.dataType, NumericType))
    truths = _any_of(field.name for field in fields.fields if isinstance(field.dataType, BooleanType))
    # The path is a URI, in which + is no space.
    text = F.url_decode(F.replace(folders, F.lit("+"), F.lit("%2B")))
    unquoted = rf"/({numbers})=(-?)0*(\d[^/]*)|/({truths})=(true|false)"
    text = F.regexp_replace(text, unquoted, '/,"$1$4":$2$3$5')
    text = F.regexp_replace(text, "/([^/=,][^/=]*)=([^/]*)", '/,"$1":"$2"')
    text = F.replace(F.replace(text, F.lit(f'"{NULL}"'), F.lit("null")), F.lit("/"), F.lit(""))
    return F.concat(F.lit("{"), F.substring(text, 2, 1 << 30), F.lit("}"))


def _any_of(names: Iterable[str]) -> str:
    """Return a pattern for one of these names, which matches nothing if there are none."""
    return "|".join(map(re.escape, names)) or "(?!)"


def _is_text(kind: DataType) -> bool:
    from pyspark.sql.types import CharType, StringType, VarcharType

    return isinstance(kind, StringType | CharType | VarcharType)


def _is_simple(kind: DataType) -> bool:
    from pyspark.sql.types import AtomicType, VariantType

    return isinstance(kind, AtomicType) and not isinstance(kind, VariantType)
