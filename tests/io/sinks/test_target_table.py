"""Existing tables that differ from the rows of a step: columns that are added, and differences that are refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from deltalake import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from headrace.config.models import Environment, LocalEngine, Sink, Step, Tables
from headrace.errors import ConfigurationError, GuardError, HeadraceError
from headrace.io.delta.delta_table import table_of
from headrace.io.delta.transaction_id import TransactionId
from headrace.io.sinks import table_sink, target_table
from headrace.runtime.adoption import adopt_tables
from selection import mostly_full

LAND = """
    land:
      layer: bronze
      reads: {{rows: {{source: rows, schema: "id STRING, n INT{more}"}}}}
      writes: {{table: landed{sink}}}
    """
EMAIL = ", email STRING"
MODES = {"append": "", "replace": ", mode: replace", "upsert": ", mode: upsert, keys: [id], sequence: n"}


def land(more="", sink=""):
    return LAND.format(more=more, sink=sink)


def row(name, n=1, **more):
    return {"id": name, "n": n, **more}


def version(flow, table):
    return DeltaTable(str(flow.directory / "tables" / table)).version()


def warnings(run, step):
    return [event.message for event in run.events if event.what == "warning" and event.step == step]


@pytest.fixture
def landed(flow):
    """A pipeline whose source has one row in the table `landed`, which a step has written."""
    flow.source("rows")
    flow.steps(land())
    flow.feed("rows", row("a"))
    flow.run()
    return flow


# ── Added columns ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", mostly_full(list(MODES), "append"))
def test_column_that_the_table_lacks_is_added(flow, mode):
    flow.source("rows")
    flow.feed("rows", row("a"))
    flow.steps(land(sink=MODES[mode]))
    flow.run()
    flow.feed("rows", row("b", email="b@c"))
    flow.steps(land(EMAIL, f"{MODES[mode]}, evolve: add"))
    run = flow.run()
    expected = [row("b", email="b@c")] if mode == "replace" else [row("a", email=None), row("b", email="b@c")]
    assert sorted(flow.read("landed"), key=lambda each: each["id"]) == expected
    assert "adds column email STRING to table 'landed' (evolve: add)" in warnings(run, "land")
    before = version(flow, "landed")
    assert warnings(flow.run(), "land") == []
    assert version(flow, "landed") == before


def doubled(rows):
    return rows.withColumn("twice", F.col("n") * 2)


def test_column_is_added_to_each_table_that_evolves_before_rows_are_checked_and_transformed(flow):
    flow.source("rows")
    flow.feed("rows", row("a"), "no json")
    flow.steps(land())
    flow.run()
    flow.steps(f"""
        land:
          layer: bronze
          reads: {{rows: {{source: rows, schema: "id STRING, n INT, email STRING"}}}}
          transform: {__name__}:doubled
          row_wise: true
          expect: [{{between: {{twice: [0, 9]}}}}]
          writes:
            - {{table: landed, evolve: add}}
            - {{table: second, evolve: add, cluster_by: [email]}}
        """)
    flow.feed("rows", row("b", 2, email="b@c"), row("c", 30), "no json either")
    flow.run()
    new = {"id": "b", "n": 2, "email": "b@c", "twice": 4}
    assert new in flow.read("landed")
    assert flow.read("second") == [new]
    bad_rows = [bad["raw"] for bad in flow.read("landed_quarantine")]
    assert sorted(bad_rows) == ["no json", "no json either", '{"id":"c","n":30,"twice":60}']


@pytest.mark.full
def test_field_of_a_column_is_added(flow):
    flow.source("rows")
    old = ", customer STRUCT<name: STRING>, lines ARRAY<STRUCT<item: STRING>>, tags MAP<STRING, STRUCT<a: INT>>"
    new = (
        ", customer STRUCT<name: STRING, `e.mail`: STRING>, lines ARRAY<STRUCT<item: STRING, price: DOUBLE>>, "
        "tags MAP<STRING, STRUCT<a: INT, b: STRUCT<c: INT>>>, `home-address` STRUCT<`post.code`: INT>"
    )
    flow.steps(land(old))
    flow.feed("rows", row("a", customer={"name": "Ann"}))
    flow.run()
    flow.steps(land(new))
    with pytest.raises(ConfigurationError) as error:
        flow.run()
    assert "ALTER TABLE" in error.value.problems[0].fix
    flow.steps(land(new, ", evolve: add"))
    added = {
        "customer": {"name": "Bo", "e.mail": "b@c"},
        "lines": [{"item": "x", "price": 1.5}],
        "home-address": {"post.code": 1},
    }
    flow.feed("rows", row("b", **added, tags={"k": {"a": 1, "b": {"c": 2}}}))
    flow.run()
    read = {each["id"]: each for each in flow.read("landed")}
    assert {key: read["b"][key] for key in added} == added
    assert dict(read["b"]["tags"]) == {"k": {"a": 1, "b": {"c": 2}}}
    assert read["a"]["customer"] == {"name": "Ann", "e.mail": None}


@pytest.mark.full
def test_repeated_batch_is_written_once_after_a_column_was_added(landed):
    landed.feed("rows", row("b"))
    landed.run()
    landed.crash_before_commit("land")
    landed.steps(land(EMAIL, ", evolve: add"))
    landed.feed("rows", row("c", email="c@d"))
    landed.run()
    assert sorted((each["id"], each["email"]) for each in landed.read("landed")) == [
        ("a", None),
        ("b", None),
        ("c", "c@d"),
    ]


@pytest.mark.full
def test_batch_that_no_table_has_is_written_once_after_a_column_was_added(landed):
    landed.feed("rows", row("b"))
    landed.run()
    landed.crash_before_commit("land", undo=["landed"])
    landed.steps(land(EMAIL, ", evolve: add"))
    landed.run()
    assert sorted(each["id"] for each in landed.read("landed")) == ["a", "b"]


# ── Steps that read the table ─────────────────────────────────────────────────────────────────────────

CHAIN = """
    silver:
      layer: silver
      reads: {{rows: {{table: landed}}}}
      writes: {{table: silver, mode: upsert, keys: [id], sequence: n{sink}}}
    gold:
      layer: gold
      reads: {{rows: {{table: silver, changes: true}}}}
      transform: {module}:without_deletes
      writes: {{table: gold{sink}}}
    """


def without_deletes(rows):
    return rows.where("_change_type != 'delete'").drop("_commit_version", "_commit_timestamp", "_change_type")


def chain(more="", sink=""):
    return land(more, sink) + CHAIN.format(sink=sink, module=__name__)


@pytest.mark.full
def test_column_passes_through_all_steps_of_one_run(flow):
    flow.source("rows")
    flow.steps(chain())
    flow.feed("rows", row("a"))
    flow.run()
    flow.steps(chain(EMAIL, ", evolve: add"))
    flow.feed("rows", row("b", email="b@c"))
    flow.run()
    for table in ("landed", "silver", "gold"):
        assert sorted((each["id"], each["email"]) for each in flow.read(table)) == [("a", None), ("b", "b@c")]
    assert [event.message for event in flow.run().events if event.what == "warning"] == []


def test_nothing_is_altered_if_the_table_of_a_reader_lacks_the_column(flow):
    flow.source("rows")
    flow.steps(chain())
    flow.feed("rows", row("a"))
    flow.run()
    flow.steps(land(EMAIL, ", evolve: add") + CHAIN.format(sink="", module=__name__))
    before = version(flow, "landed")
    with pytest.raises(HeadraceError) as error:
        flow.run()
    messages = [problem.message for problem in error.value.problems]
    assert [message.partition(",")[0] for message in messages] == [
        "table 'silver' has no column 'email'",
    ]
    assert version(flow, "landed") == before


def without_duplicates(rows):
    return rows.dropDuplicates()


def paired(rows, others):
    return rows.alias("a").join(others.alias("b"), F.expr("a.id = b.id")).select("a.*", F.col("b.n").alias("other"))


READERS = {
    "deduplication of whole rows": (
        "rows: {table: landed}",
        "without_duplicates",
        "keys of dropDuplicates id, n → id, n, email",
    ),
    "join that keeps all columns": (
        "rows: {table: landed}, others: {table: landed}",
        "paired",
        "left state of the join string, int → string, int, string",
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_nothing_is_altered_if_the_column_would_enter_the_state_of_a_reader(flow, reader):
    reads, transform, expected = READERS[reader]
    step = f"""
    reader:
      layer: silver
      reads: {{{reads}}}
      transform: {__name__}:{transform}
      writes: {{table: read, evolve: add}}
    """
    flow.source("rows")
    flow.steps(land() + step)
    flow.feed("rows", row("a"))
    flow.run()
    flow.feed("rows", row("b", email="b@c"))
    flow.steps(land(EMAIL, ", evolve: add") + step)
    before = version(flow, "landed")
    with pytest.raises(GuardError) as error:
        flow.run()
    (problem,) = error.value.problems
    assert "step 'reader' has changed since its checkpoint was written" in problem.message
    assert "Spark refuses the old state" in problem.message
    assert expected in problem.message
    assert version(flow, "landed") == before


# ── Tables that do not fit ────────────────────────────────────────────────────────────────────────────

# The type in the table, and a value of the type in the rows.
SAME_VALUE = [
    ("INT", "7Y"),
    ("INT", "7S"),
    ("SMALLINT", "7Y"),
    ("STRING", "CAST('x' AS VARCHAR(3))"),
    ("INT", "null"),
    ("ARRAY<STRUCT<a: INT>>", "array(named_struct('a', 1Y))"),
]
SAME_VALUE_IF_CAST = [
    ("BIGINT", "7"),
    ("DOUBLE", "7"),
    ("DOUBLE", "7.5F"),
    ("DECIMAL(12,2)", "7.25BD"),
    ("STRING", "7"),
    ("TIMESTAMP", "DATE'2026-01-01'"),
    ("ARRAY<BIGINT>", "array(7)"),
    ("MAP<STRING, BIGINT>", "map('k', 7)"),
    ("STRUCT<a: BIGINT>", "named_struct('a', 7)"),
]
OTHER_VALUE_OR_ERROR = [
    ("INT", "5000000000L"),
    ("TINYINT", "300"),
    ("INT", "7.5D"),
    ("FLOAT", "1e300D"),
    ("DECIMAL(12,2)", "CAST(7.125 AS DECIMAL(12,3))"),
    ("DECIMAL(3,1)", "CAST(1234.5 AS DECIMAL(5,1))"),
    ("INT", "'seven'"),
    ("DATE", "TIMESTAMP'2026-01-01 12:00:00'"),
    ("ARRAY<INT>", "array(5000000000L)"),
    ("INT", "named_struct('a', 1)"),
]
SINKS = {"append": Sink(table="t"), "upsert": Sink(table="t", mode="upsert", keys=["id"], sequence="id")}


class Target:
    """A table with one column for each pair of the table's type and the rows' value, and the rows for it."""

    def __init__(self, spark, root, pairs):
        self.spark = spark
        tables = Tables(root=str(root))
        self.environment = Environment(
            name="local", engine=LocalEngine(kind="local"), tables=tables, checkpoints="none"
        )
        columns = "".join(f", c{number} {table}" for number, (table, _) in enumerate(pairs))
        spark.sql(f"CREATE TABLE delta.`{root}/t` (id INT{columns}) USING DELTA")
        values = [f"{value} AS c{number}" for number, (_, value) in enumerate(pairs)]
        self.rows = spark.range(1).selectExpr("1 AS id", *values)

    def check(self, sink):
        target_table.require_compatible_table(self.rows, sink, self.environment, spark_sink=False)

    def write(self, sink):
        """Write the rows, and return whether the table has the same values."""
        step = Step(name="s", layer="bronze", reads={}, writes=[sink])
        table_sink.write_batch(self.rows, sink, step, self.environment, TransactionId("q", 0, is_new=True))
        written = table_of(self.environment, "t").read(self.spark)
        expected = self.rows.selectExpr(*(f"CAST({name} AS {kind})" for name, kind in written.dtypes))
        return written.collect() == expected.collect()


@pytest.mark.parametrize(("mode", "pairs"), [("append", SAME_VALUE), ("upsert", SAME_VALUE + SAME_VALUE_IF_CAST)])
def test_types_that_keep_all_values_are_accepted(spark, tmp_path, mode, pairs):
    target = Target(spark, tmp_path, pairs)
    target.check(SINKS[mode])
    assert target.write(SINKS[mode])


@pytest.mark.parametrize(
    ("mode", "pairs"), [("append", SAME_VALUE_IF_CAST + OTHER_VALUE_OR_ERROR), ("upsert", OTHER_VALUE_OR_ERROR)]
)
def test_types_that_would_fail_a_batch_or_change_values_are_refused(spark, tmp_path, mode, pairs):
    with pytest.raises(ConfigurationError) as error:
        Target(spark, tmp_path, pairs).check(SINKS[mode])
    columns = [problem.message.split("'")[1].partition(".")[0] for problem in error.value.problems]
    assert columns == [f"c{number}" for number in range(len(pairs))]


@pytest.mark.full
@pytest.mark.parametrize("number", range(len(SAME_VALUE_IF_CAST + OTHER_VALUE_OR_ERROR)))
def test_delta_itself_refuses_these_types_or_changes_values(spark, tmp_path, number):
    pair = (SAME_VALUE_IF_CAST + OTHER_VALUE_OR_ERROR)[number]
    with pytest.raises(Exception, match="DELTA_"):
        Target(spark, tmp_path / "append", [pair]).write(SINKS["append"])
    if pair in OTHER_VALUE_OR_ERROR:
        target = Target(spark, tmp_path / "upsert", [pair])
        with suppress(PySparkException, Py4JJavaError):
            target.write(SINKS["upsert"])
            written = table_of(target.environment, "t").read(spark).collect()[0]["c0"]
            assert str(written) != str(target.rows.collect()[0]["c0"])


@pytest.mark.parametrize("mode", mostly_full(list(MODES), "append"))
def test_harmless_differences_are_accepted(flow, mode):
    """Order, upper and lower case, nullability, and columns that the rows lack, except for a merge."""
    lacking = ", other STRUCT<a: INT, b: INT>" if mode == "upsert" else ", more DATE, other STRUCT<a: INT, b: INT>"
    flow.source("rows")
    flow.spark.sql(
        f"CREATE TABLE delta.`{flow.directory}/tables/landed` (N INT, ID STRING NOT NULL{lacking}) USING DELTA"
    )
    flow.steps(land(", other STRUCT<b: INT, a: INT>", MODES[mode]))
    flow.feed("rows", row("a", other={"a": 1, "b": 2}))
    adopt_tables(flow.spark, flow.bundle(), "flow", "land")
    flow.run()
    (written,) = flow.read("landed")
    assert (written["N"], written["ID"], written["other"]) == (1, "a", {"a": 1, "b": 2})


def test_all_differences_are_reported_together(landed, golden):
    schema = ", b INT, c DOUBLE, d DATE, e STRUCT<f: INT>"
    table = f"delta.`{landed.directory}/tables/other`"
    landed.spark.sql(
        f"CREATE TABLE {table} (id STRING, n TINYINT, b DOUBLE, d DATE, e STRUCT<f: STRING>) USING DELTA "
        "PARTITIONED BY (d)"
    )
    landed.steps(land(schema, ", cluster_by: [d]").replace("table: landed", "table: other"))
    with pytest.raises(HeadraceError) as error:
        landed.rehearse()
    golden("steps/target_table", str(error.value).replace(str(landed.directory), "HERE"))


@pytest.mark.parametrize(
    ("existing", "sink", "message", "fix"),
    [
        (
            "partition_by: [id]",
            "partition_by: [n]",
            "is partitioned by id, but partition_by is n",
            "write partition_by: [id]",
        ),
        (
            "partition_by: [id, n]",
            "partition_by: [n, id]",
            "is partitioned by id, n, but",
            "write partition_by: [id, n]",
        ),
        ("partition_by: [id]", "cluster_by: [n]", "is not clustered, but cluster_by is n", "remove cluster_by"),
        ("mode: append", "partition_by: [n]", "is not partitioned, but partition_by is n", "remove partition_by"),
        ("cluster_by: [id]", "cluster_by: [n]", "is clustered by id, but cluster_by is n", "ALTER TABLE"),
        ("mode: append", "cluster_by: [n]", "is not clustered, but cluster_by is n", "ALTER TABLE"),
        ("partition_by: [id]", "mode: append", "", ""),
        ("cluster_by: [id]", "cluster_by: [ID]", "", ""),
    ],
)
def test_other_partitions_than_those_of_the_table_are_refused(flow, existing, sink, message, fix):
    flow.source("rows")
    flow.steps(land(EMAIL, f", {existing}"))
    flow.feed("rows", row("a"))
    flow.run()
    flow.steps(land(EMAIL, f", {sink}"))
    if not message:
        flow.feed("rows", row("b"))
        flow.run()
        assert sorted(each["id"] for each in flow.read("landed")) == ["a", "b"]
        return
    with pytest.raises(ConfigurationError, match=message) as error:
        flow.rehearse()
    assert fix in error.value.problems[0].fix
    if "ALTER TABLE" in fix:
        flow.spark.sql(error.value.problems[0].fix.partition("table: ")[2])
        flow.rehearse()
