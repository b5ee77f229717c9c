"""Compare the schema of a step's rows with that of its table: what would be added, fail, or be stored differently."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from headrace.config.models import Environment, Sink, Step
from headrace.errors import ConfigurationError, Problem
from headrace.io.delta.delta_table import Table, table_of
from headrace.spark.schema_differences import Difference, differences, with_added_fields

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

SCHEMA_EVOLUTION = "spark.databricks.delta.schema.autoMerge.enabled"


def added_columns(spark: SparkSession, rows: StructType, sink: Sink, environment: Environment) -> list[Difference]:
    """Return what `evolve: add` adds to the sink's table: the columns, and fields in columns, that only the rows have.

    `rows` is the schema of the rows. Return an empty list if the table does not exist.
    """
    if sink.evolve is None:
        return []
    table = table_of(environment, str(sink.table))
    return _missing_columns(differences(table.read(spark).schema, rows)) if table.exists(spark) else []


def added_column_notes(rows: DataFrame, step: Step, environment: Environment) -> list[str]:
    """Return a note for each table of the step to which `evolve: add` adds columns."""
    notes = []
    for sink in step.writes:
        if added := added_columns(rows.sparkSession, rows.schema, sink, environment):
            notes.append(f"adds {_listed(added)} to table {sink.table!r} (evolve: add)")
    return notes


def future_schema(spark: SparkSession, rows: StructType, sink: Sink, environment: Environment) -> StructType | None:
    """Return the schema that the sink's table will have once the step has created it or added columns to it.

    Return None if the table exists and no columns are added. `rows` is the schema of the rows.
    """
    table = table_of(environment, str(sink.table))
    if not table.exists(spark):
        return rows
    added = added_columns(spark, rows, sink, environment)
    return with_added_fields(table.read(spark).schema, rows) if added else None


def require_compatible_table(rows: DataFrame, sink: Sink, environment: Environment, *, spark_sink: bool) -> None:
    """Raise ConfigurationError if the sink's table exists, and a batch would fail or store other values in it.

    `spark_sink`: Delta's own streaming sink writes the rows, not the batch writer.
    """
    if not sink.table:
        return
    spark, table = rows.sparkSession, table_of(environment, sink.table)
    if not table.exists(spark):
        return
    options = {key.lower() for key, value in sink.options.items() if str(value).lower() == "true"}
    if "overwriteschema" in options:
        return
    found = list(differences(table.read(spark).schema, rows.schema))
    is_merged = "mergeschema" in options or str(spark.conf.get(SCHEMA_EVOLUTION, None)).lower() == "true"
    problems = [] if sink.evolve or is_merged else list(_missing_column_problems(table, found))
    # Only batches that are appended or overwritten at a path are not cast to the types of the table.
    is_cast = sink.mode == "upsert" or spark_sink or not table.by_path
    problems += _type_problems(spark, table, found, is_cast=is_cast)
    problems += _layout_problems(spark, table, sink)
    if problems:
        raise ConfigurationError.of(problems)


def _missing_columns(found: Iterable[Difference]) -> list[Difference]:
    """Return the columns and fields that the table lacks. Delta does not write columns without a type (4.4.0)."""
    from pyspark.sql.types import NullType

    return [each for each in found if each.old is None and not isinstance(each.new, NullType)]


def _missing_column_problems(table: Table, found: Iterable[Difference]) -> Iterator[Problem]:
    """Yield a problem if the table lacks columns.

    A merge would silently drop them, and any other write would fail (Delta 4.4.0).
    """
    if missing := _missing_columns(found):
        message = f"table {table.name!r} has no column {missing[0].name!r}, which the step's rows have"
        fix = f"write evolve: add in the sink, which adds {_listed(missing)}; or add them yourself: "
        yield Problem("", message, fix + table.add_columns_statement(missing))


def _type_problems(
    spark: SparkSession, table: Table, found: Iterable[Difference], *, is_cast: bool
) -> Iterator[Problem]:
    """Yield a problem for each column whose type the table does not accept.

    If the values are cast, those that do not fit would fail, and fractions would be cut off (Delta 4.4.0).
    """
    for each in found:
        if each.old is None or each.new is None or _accepts(spark, each.old, each.new, is_cast=is_cast):
            continue
        message = (
            f"column {each.name!r} of table {table.name!r} is {each.old_type}, but {each.new_type} in the step's rows"
        )
        widen = (
            f"ALTER TABLE {table.sql_name} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true'), then "
            f"ALTER TABLE {table.sql_name} ALTER COLUMN {each.sql_name} TYPE {each.new_type}"
        )
        fix = f"cast the column to {each.old_type} in a transform"
        yield Problem("", message, f"{fix}; or widen it: {widen}" if each.is_widening else fix)


def _accepts(spark: SparkSession, table: DataType, rows: DataType, *, is_cast: bool) -> bool:
    """Return whether a column of the table stores all values of a column of the rows as they are."""
    from pyspark.sql.types import ByteType, IntegerType, NullType, ShortType

    narrower: dict[DataType, tuple[DataType, ...]] = {
        ShortType(): (ByteType(),),
        IntegerType(): (ByteType(), ShortType()),
    }
    if isinstance(rows, NullType) or rows in narrower.get(table, ()):
        return True
    if not is_cast:
        return False
    try:
        jvm: Any = spark._jvm
        table_type, rows_type = (
            jvm.org.apache.spark.sql.types.DataType.fromJson(each.json()) for each in (table, rows)
        )
        return bool(jvm.org.apache.spark.sql.catalyst.expressions.Cast.canUpCast(rows_type, table_type))
    except (AttributeError, NotImplementedError, TypeError):  # without the JVM, the first batch decides
        return True


def _layout_problems(spark: SparkSession, table: Table, sink: Sink) -> Iterator[Problem]:
    """Yield a problem if the sink names other partition columns or clustering columns than the table has.

    Without `partition_by` and `cluster_by`, the layout of the table is used.
    """
    if not (sink.partition_by or sink.cluster_by):
        return
    detail = table.delta(spark).detail().collect()[0]
    partitions, clusters = detail["partitionColumns"], detail["clusteringColumns"]
    # Delta does not append to partitions whose columns differ in their order, or in upper and lower case (4.4.0).
    if sink.partition_by and list(sink.partition_by) != partitions:
        message = f"{_layout(table, 'partitioned', partitions)}, but partition_by is {', '.join(sink.partition_by)}"
        fix = f"write partition_by: [{', '.join(partitions)}]" if partitions else "remove partition_by"
        yield Problem("", message, f"{fix}, because the partitions of a table cannot be changed; or use another table")
    if sink.cluster_by and _lower(sink.cluster_by) != _lower(clusters):
        message = f"{_layout(table, 'clustered', clusters)}, but cluster_by is {', '.join(sink.cluster_by)}"
        fix = f"write cluster_by: [{', '.join(clusters)}]" if clusters else "remove cluster_by"
        statement = f"ALTER TABLE {table.sql_name} CLUSTER BY ({', '.join(sink.cluster_by)})"
        # A partitioned table cannot be clustered.
        yield Problem("", message, fix if partitions else f"{fix}; or cluster the table: {statement}")


def _layout(table: Table, verb: str, columns: Sequence[str]) -> str:
    return f"table {table.name!r} is " + (f"{verb} by {', '.join(columns)}" if columns else f"not {verb}")


def _lower(columns: Iterable[str]) -> list[str]:
    return [column.replace("`", "").lower() for column in columns]


def _listed(columns: list[Difference]) -> str:
    noun = "column" if len(columns) == 1 else "columns"
    return f"{noun} {', '.join(f'{each.name} {each.new_type}' for each in columns)}"
