"""Open files as a stream: each format with its position, its raw records and its partition folders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.config.models import FileSource, local_path
from headrace.config.spark_options import encoding_of, is_true, option
from headrace.expectations.verdict import MALFORMED, POSITION, RAW
from headrace.io.sources.decoding import decode, was_replaced, with_valid_text
from headrace.io.sources.json_records import CORRUPT, LATE, parse_json
from headrace.io.sources.partition_folders import Partitions, cast_folders, late_fields, partitions_of
from headrace.spark import java_compiler
from headrace.spark.columns import quote_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import StructType

# Otherwise Spark silently skips files that are a week older than the newest file it has read (4.2.0).
ALL_FILES = {"maxFileAge": "36500d"}
FORMATS = ("json", "csv", "text", "xml", "parquet", "orc", "avro", "binaryFile")  # that may have partition folders
BINARY_FILE = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"  # as Spark's batch reader has it
LONGEST_RAW = 65_536  # characters: Spark gives the whole file as the text of each malformed XML record (4.2.0)
LINE, FOLDER = "_headrace_line", "_headrace_folder_"
GLOB = r"[{}\[\]*?\\]|%(7B|7D|5B|5D|3F|5C)"  # in a path, which is URL-encoded


def open_stream(spark: SparkSession, source: FileSource, schema: StructType | None) -> DataFrame:
    """Open the files of a source as rows of this schema, with the columns about the raw records."""
    rows = _open_format(spark, source, schema)
    return rows if _reads_names_exactly(spark, source) else _without_glob_names(rows)


def _open_format(spark: SparkSession, source: FileSource, schema: StructType | None) -> DataFrame:
    from pyspark.sql.types import StructType

    reader = spark.readStream.options(**{**ALL_FILES, **source.options}).format(source.format)
    if source.format not in FORMATS:
        return _load(reader, source.path, schema)
    partitions = partitions_of(spark, source)
    if schema is not None and source.format in PARSED:
        return PARSED[source.format](reader, source, schema, partitions)
    if schema is None and source.format == "binaryFile":
        schema = StructType.fromDDL(BINARY_FILE)  # type: ignore[assignment]
    rows = _load(reader, source.path, schema)
    rows = partitions.guarded(rows, schema or StructType())
    if source.format != "text":
        return rows
    line = rows.columns[0]
    return with_valid_text(decode(rows, line, encoding_of(source.options)), line, RAW)


def inferred_schema(spark: SparkSession, source: FileSource) -> StructType:
    """Return the schema that Spark infers from the files that exist now, without the column of malformed records."""
    from pyspark.sql.types import StructType

    reader = spark.read.options(**source.options)
    if source.format == "json" and encoding_of(source.options) and not option(source.options, "lineSep"):
        reader = reader.option("lineSep", "\n")  # which Spark requires here
    schema = reader.format(source.format).load(source.path).schema
    return StructType([field for field in schema.fields if field.name != CORRUPT])


def _load(reader: DataStreamReader, path: str, schema: StructType | None) -> DataFrame:
    rows = (reader.schema(schema) if schema is not None else reader).load(path)
    return rows.withColumn(POSITION, rows["_metadata.file_path"])


def _read_json(reader: DataStreamReader, source: FileSource, schema: StructType, partitions: Partitions) -> DataFrame:
    """Read JSON as text, since Spark's own reader ignores what follows an object (4.2.0)."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructField, StructType

    whole = is_true(source.options, "multiLine")
    reader = reader.format("text").option("wholetext", whole)
    folders = {field.name: f"{FOLDER}{number}" for number, field in enumerate(partitions.present)}
    late = late_fields(schema, source.options) if partitions.may_appear else None
    if late is not None:
        lines = _load(reader.option("recursiveFileLookup", True), source.path, None)
        records = partitions.with_late_folders(lines, late, LATE)
    else:
        with_folders = StructType([StructField(LINE, StringType()), *partitions.read_as_text(schema)])
        records = _load(reader, source.path, with_folders).withColumnsRenamed({**folders, LINE: "value"})
    records = decode(records, "value", encoding_of(source.options)).where(F.trim("value") != "")
    rows = with_valid_text(parse_json(records, schema, source.options, late=late, whole=whole), RAW)

    columns = {name: F.col(quote_name(name)) for name in schema.names}
    texts = {name: F.col(folders[folder]) for name, folder in partitions.declared(schema).items()}
    values, misfits = cast_folders(texts, schema)
    columns |= values | {field.name: F.col(folders[field.name]) for field in partitions.undeclared(schema)}
    return _selected(rows, columns, F.col(RAW), F.col(MALFORMED) | misfits)


def _read_marked(reader: DataStreamReader, source: FileSource, schema: StructType, partitions: Partitions) -> DataFrame:
    """Read CSV or XML with Spark's own column of malformed records.

    It is the first column, because Spark appends the columns of folders that appear later (4.2.0). Folders that exist
    are read as text, because a value that does not fit its type would stop the stream.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    marked = StructType().add(CORRUPT, "string")
    in_folders = partitions.declared(schema)
    for field in schema.fields:
        marked = marked.add(field.name, "string") if field.name in in_folders else marked.add(field)
    reader = reader.format(source.format).options(columnNameOfCorruptRecord=CORRUPT, **_defaults(source))
    rows = partitions.guarded(_load(reader, source.path, marked), schema)

    own = F.struct(*[quote_name(name) for name in schema.names if name not in in_folders])
    if source.format == "csv":
        raw = F.coalesce(CORRUPT, F.to_csv(own, {key: str(value) for key, value in source.options.items()}))
    else:
        raw = F.coalesce(F.substring(CORRUPT, 1, LONGEST_RAW), F.to_json(own))
    columns = {name: F.col(quote_name(name)) for name in rows.columns if name not in (CORRUPT, POSITION)}
    values, malformed = cast_folders({name: columns[name] for name in in_folders}, schema)
    malformed = F.col(CORRUPT).isNotNull() | was_replaced(schema) | malformed
    return _selected(rows, columns | values, raw, malformed)


def _selected(rows: DataFrame, columns: Mapping[str, Column], raw: Column, malformed: Column) -> DataFrame:
    data = [column.alias(name) for name, column in columns.items()]
    return rows.select(*data, raw.alias(RAW), POSITION, malformed.alias(MALFORMED))


def _defaults(source: FileSource) -> dict[str, bool]:
    """Return the options that are set unless the user sets them."""
    if source.format == "csv":
        # Spark maps columns by position whatever the header says, unless it compares them (4.2.0).
        return {} if option(source.options, "enforceSchema") else {"enforceSchema": False}
    # Spark's newer XML parser ignores `encoding` (4.2.0).
    is_decoded = encoding_of(source.options) and not option(source.options, "useLegacyXMLParser")
    return {"useLegacyXMLParser": True} if is_decoded else {}


def _reads_names_exactly(spark: SparkSession, source: FileSource) -> bool:
    """Return whether file names with glob characters are safe; see `_without_glob_names`."""
    has_own_file_system = spark.conf.get("spark.hadoop.fs.file.impl", "") == java_compiler.LOCAL_FILES
    recursive = str(source.options.get("recursiveFileLookup", "")).lower() == "true"  # lists each file once
    return recursive or (has_own_file_system and bool(local_path(source.path)))


def _without_glob_names(frame: DataFrame) -> DataFrame:
    """Fail on rows of a file like `report[1].json`: Spark repeats the other files of its batch (4.1.0, 4.2.0)."""
    from pyspark.sql import functions as F

    position = F.col(POSITION)
    message = F.concat(
        F.lit("Spark would repeat rows, because a file's path contains one of the characters {}[]*?\\: "),
        position,
        F.lit("; set recursiveFileLookup: true in the source's options (a new name is too late for this batch)"),
    )
    return frame.where(F.when(position.rlike(GLOB), F.raise_error(message)).otherwise(True))


PARSED = {"json": _read_json, "csv": _read_marked, "xml": _read_marked}
