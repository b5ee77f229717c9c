"""Open files as a stream of rows with their raw records, their positions and the columns of their partition folders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.config.models import FileSource, local_path
from headrace.config.spark_options import encoding_of, is_true, option
from headrace.expectations.verdict import MALFORMED, POSITION, RAW
from headrace.io.sources.decoding import decode, has_replacement, with_valid_text
from headrace.io.sources.json_records import CORRUPT, FOLDER_VALUES, parse_json
from headrace.io.sources.partition_folders import Partitions, cast_folders, fields_from_later_folders, partitions_of
from headrace.spark import java_compiler
from headrace.spark.columns import quote_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import StructType

# With the default, Spark silently skips files that are a week older than the newest file that it has read (4.2.0).
ALL_FILES = {"maxFileAge": "36500d"}
# The formats for which Spark adds the columns of partition folders.
PARTITIONED_FORMATS = ("json", "csv", "text", "xml", "parquet", "orc", "avro", "binaryFile")
# The schema that Spark's batch reader has for the format binaryFile.
BINARY_FILE_SCHEMA = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
# Spark returns the whole file as the text of each malformed XML record (4.2.0), so the raw record is cut off.
MAX_RAW_CHARACTERS = 65_536
# Temporary columns: the text of a line of a JSON file, and the values of partition folders (followed by a number).
LINE_COLUMN, FOLDER_COLUMN_PREFIX = "_headrace_line", "_headrace_folder_"
GLOB_CHARACTER = r"[{}\[\]*?\\]|%(7B|7D|5B|5D|3F|5C)"  # as it is, or URL-encoded


def open_stream(spark: SparkSession, source: FileSource, schema: StructType | None) -> DataFrame:
    """Open the files of a source as rows of this schema, with the columns about the raw records."""
    rows = _open_format(spark, source, schema)
    return rows if _reads_each_file_once(spark, source) else _fail_on_glob_names(rows)


def _open_format(spark: SparkSession, source: FileSource, schema: StructType | None) -> DataFrame:
    """Open the files with one of READERS, or with Spark's reader for another format or without a schema."""
    from pyspark.sql.types import StructType

    reader = spark.readStream.options(**{**ALL_FILES, **source.options}).format(source.format)
    if source.format not in PARTITIONED_FORMATS:
        return _load(reader, source.path, schema)
    partitions = partitions_of(spark, source)
    if schema is not None and source.format in READERS:
        return READERS[source.format](reader, source, schema, partitions)
    if schema is None and source.format == "binaryFile":
        schema = StructType.fromDDL(BINARY_FILE_SCHEMA)  # type: ignore[assignment]
    rows = _load(reader, source.path, schema)
    rows = partitions.fail_on_unreadable_folders(rows, schema or StructType())
    if source.format != "text":
        return rows
    line = rows.columns[0]
    return with_valid_text(decode(rows, line, encoding_of(source.options)), line, RAW)


def inferred_schema(spark: SparkSession, source: FileSource) -> StructType:
    """Return the schema that Spark infers from the files that exist now, without the column CORRUPT."""
    from pyspark.sql.types import StructType

    reader = spark.read.options(**source.options)
    if source.format == "json" and encoding_of(source.options) and not option(source.options, "lineSep"):
        reader = reader.option("lineSep", "\n")  # without it, Spark rejects the encoding
    schema = reader.format(source.format).load(source.path).schema
    return StructType([field for field in schema.fields if field.name != CORRUPT])


def _load(reader: DataStreamReader, path: str, schema: StructType | None) -> DataFrame:
    """Load the files, with their paths in the column POSITION. Without `schema`, the format determines the columns."""
    rows = (reader.schema(schema) if schema is not None else reader).load(path)
    return rows.withColumn(POSITION, rows["_metadata.file_path"])


def _read_json(reader: DataStreamReader, source: FileSource, schema: StructType, partitions: Partitions) -> DataFrame:
    """Read JSON files as text and parse it, because Spark's own reader ignores text that follows an object (4.2.0)."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructField, StructType

    is_whole_file = is_true(source.options, "multiLine")
    reader = reader.format("text").option("wholetext", is_whole_file)
    # The columns of folders get temporary names, which differ from all names of fields.
    folder_columns = {field.name: f"{FOLDER_COLUMN_PREFIX}{number}" for number, field in enumerate(partitions.present)}
    folder_fields = fields_from_later_folders(schema, source.options) if partitions.may_appear else None
    if folder_fields is not None:  # folders may appear later: take their values from each file's path
        lines = _load(reader.option("recursiveFileLookup", True), source.path, None)
        records = partitions.with_folder_values(lines, folder_fields, FOLDER_VALUES)
    else:
        schema_with_folders = StructType([StructField(LINE_COLUMN, StringType()), *partitions.fields_as_text(schema)])
        new_names = {**folder_columns, LINE_COLUMN: "value"}
        records = _load(reader, source.path, schema_with_folders).withColumnsRenamed(new_names)
    records = decode(records, "value", encoding_of(source.options)).where(F.trim("value") != "")
    rows = parse_json(records, schema, source.options, folder_fields=folder_fields, is_whole_file=is_whole_file)
    rows = with_valid_text(rows, RAW)

    columns = {name: F.col(quote_name(name)) for name in schema.names}
    texts = {name: F.col(folder_columns[folder]) for name, folder in partitions.declared(schema).items()}
    values, has_misfit = cast_folders(texts, schema)
    columns |= values
    columns |= {field.name: F.col(folder_columns[field.name]) for field in partitions.undeclared(schema)}
    return _selected(rows, columns, F.col(RAW), F.col(MALFORMED) | has_misfit)


def _read_csv_or_xml(
    reader: DataStreamReader, source: FileSource, schema: StructType, partitions: Partitions
) -> DataFrame:
    """Read CSV or XML with Spark's own reader, which puts the text of malformed records in the column CORRUPT.

    CORRUPT is the first column, because Spark appends the columns of folders that appear later (4.2.0). The values of
    existing folders are read as text, because a value that does not fit its declared type would stop the stream.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    read_schema = StructType().add(CORRUPT, "string")
    in_folders = partitions.declared(schema)
    for field in schema.fields:
        read_schema = read_schema.add(field.name, "string") if field.name in in_folders else read_schema.add(field)
    reader = reader.format(source.format).options(columnNameOfCorruptRecord=CORRUPT, **_default_options(source))
    rows = partitions.fail_on_unreadable_folders(_load(reader, source.path, read_schema), schema)

    record = F.struct(*[quote_name(name) for name in schema.names if name not in in_folders])
    if source.format == "csv":
        raw = F.coalesce(CORRUPT, F.to_csv(record, {key: str(value) for key, value in source.options.items()}))
    else:
        raw = F.coalesce(F.substring(CORRUPT, 1, MAX_RAW_CHARACTERS), F.to_json(record))
    columns = {name: F.col(quote_name(name)) for name in rows.columns if name not in (CORRUPT, POSITION)}
    values, has_misfit = cast_folders({name: columns[name] for name in in_folders}, schema)
    malformed = F.col(CORRUPT).isNotNull() | has_replacement(schema) | has_misfit
    return _selected(rows, columns | values, raw, malformed)


def _selected(rows: DataFrame, columns: Mapping[str, Column], raw: Column, malformed: Column) -> DataFrame:
    """Return rows with these columns of data, and the columns about the raw records."""
    data = [column.alias(name) for name, column in columns.items()]
    return rows.select(*data, raw.alias(RAW), POSITION, malformed.alias(MALFORMED))


def _default_options(source: FileSource) -> dict[str, bool]:
    """Return Headrace's defaults for options that the user has not set."""
    if source.format == "csv":
        # By default, Spark assigns columns by position and does not compare the header with the schema (4.2.0).
        return {} if option(source.options, "enforceSchema") else {"enforceSchema": False}
    # Spark's newer XML parser ignores `encoding` (4.2.0).
    needs_legacy_parser = encoding_of(source.options) and not option(source.options, "useLegacyXMLParser")
    return {"useLegacyXMLParser": True} if needs_legacy_parser else {}


def _reads_each_file_once(spark: SparkSession, source: FileSource) -> bool:
    """Return whether Spark repeats no rows if a file has glob characters in its path; see `_fail_on_glob_names`."""
    has_headrace_file_system = spark.conf.get("spark.hadoop.fs.file.impl", "") == java_compiler.LOCAL_FILES
    recursive = str(source.options.get("recursiveFileLookup", "")).lower() == "true"  # then Spark lists each file once
    return recursive or (has_headrace_file_system and bool(local_path(source.path)))


def _fail_on_glob_names(frame: DataFrame) -> DataFrame:
    """Raise an error in Spark for each row from a file with glob characters in its path, like `report[1].json`.

    If a batch has such a file, Spark reads the other files of the batch twice (4.1.0, 4.2.0).
    """
    from pyspark.sql import functions as F

    position = F.col(POSITION)
    message = F.concat(
        F.lit("Spark would repeat rows, because a file's path contains one of the characters {}[]*?\\: "),
        position,
        F.lit("; set recursiveFileLookup: true in the source's options (renaming the file does not help this batch)"),
    )
    return frame.where(F.when(position.rlike(GLOB_CHARACTER), F.raise_error(message)).otherwise(True))


READERS = {"json": _read_json, "csv": _read_csv_or_xml, "xml": _read_csv_or_xml}
