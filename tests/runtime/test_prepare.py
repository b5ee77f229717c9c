"""Preparing steps: everything is asked before anything is written, and all that is wrong is told at once."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import functions as F

from headrace.config.models import Read, Sink, Step
from headrace.errors import ConfigurationError
from headrace.runtime import prepare, runner

ROWS = "reads: {rows: {source: lines}}"


def no_frame(rows):
    return rows.columns


def broken(rows):
    raise KeyError("price")


def unknown_column(rows):
    return rows.select("price")


def total(rows):
    return rows.groupBy("value").count()


def ordered(rows):
    return rows.orderBy("value")


def renamed(rows):
    return rows.withColumnRenamed("value", "line")


def numbered(rows, names):
    return rows.join(names, "value").withColumn("partitions", partitions(rows))


def partitions(rows):
    return F.lit(rows.sparkSession.conf.get("spark.sql.shuffle.partitions"))


def step(transform, *more, reads=ROWS):
    lines = [f"{transform}:", "  layer: bronze", f"  {reads}", f"  transform: {__name__}:{transform}"]
    lines += [f"  writes: {{table: t_{transform}}}", *(f"  {line}" for line in more)]
    return "\n".join(lines) + "\n"


def test_all_problems_of_all_steps_are_told_and_nothing_is_written(flow, golden):
    flow.source("lines", "text")
    flow.feed("lines", "one")
    wrong = [
        step("no_frame"),
        step("broken"),
        step("unknown_column"),
        step("total"),
        step("ordered", "settings: {spark.sql.shuffle.partitions: 3}"),
        step("renamed", "expect: [{not_null: [value, lines]}]"),
        step("missing"),
        step("numbered"),
        "frozen:\n  layer: bronze\n  " + ROWS + "\n  writes: {table: t}\n  settings: {spark.sql.shuffle.partitions: 3, "
        "spark.sql.warehouse.dir: elsewhere}\n",
    ]
    flow.steps("".join(wrong))
    flow.bundle()
    before, shuffles = flow.files(), flow.spark.conf.get("spark.sql.shuffle.partitions")
    with pytest.raises(ConfigurationError) as error:
        flow.rehearse()
    assert flow.files() == before
    assert flow.spark.conf.get("spark.sql.shuffle.partitions") == shuffles
    said = str(error.value).replace(__name__, "module")
    golden("steps/all_problems", re.sub(r"#\d+", "#1", said))

    with pytest.raises(ConfigurationError):
        flow.run()
    assert not (flow.directory / "tables").exists()
    assert not [file for file in flow.files() - before if "/spark/" in file]


def test_steps_are_prepared_before_the_tables_that_they_read_are_there(flow):
    flow.source("lines", "text")
    flow.source("names")
    flow.steps(
        'names: {layer: bronze, reads: {names: {source: names, schema: "value STRING, name STRING, at TIMESTAMP"}}, '
        "writes: {table: names, mode: upsert, keys: [value], sequence: at}}\n"
        + step("renamed", "expect: [{not_null: [line]}]")
        + "lines: {layer: bronze, "
        + ROWS
        + ", writes: {table: lines}}\n"
        + step(
            "numbered",
            reads="reads: {rows: {table: lines}, names: {table: names, static: true}}",
        )
        + "refused: {layer: gold, reads: {rows: {table: names_quarantine}}, writes: {table: refused}}\n"
    )
    before = flow.files()
    ready = {one.step.name: one for one in flow.rehearse()}
    assert flow.files() - before == {"conf/local.yml", "conf/pipelines/flow.yml"}
    told = {
        name: (one.schema.names, one.has_verdicts, one.uses_spark_sink, set(one.pending_tables))
        for name, one in ready.items()
    }
    assert told == {
        "names": (["value", "name", "at"], True, False, set()),
        "renamed": (["line"], True, False, set()),
        "lines": (["value"], False, False, set()),
        "numbered": (["value", "name", "at", "partitions"], False, False, {"lines", "names"}),
        "refused": (
            ["raw", "reasons", "position", "step", "batch", "quarantined_at"],
            False,
            False,
            {"names_quarantine"},
        ),
    }


@pytest.mark.parametrize(
    ("read", "options"),
    [
        (Read(table="made"), {"startingVersion": 0}),
        (Read(table="made", options={"maxFilesPerTrigger": 1}), {"maxFilesPerTrigger": 1, "startingVersion": 0}),
        (Read(table="made", options={"startingVersion": 3}), {"startingVersion": 3}),
        (Read(table="made", options={"startingTimestamp": "2026-01-01"}), {"startingTimestamp": "2026-01-01"}),
        (Read(table="made", static=True), {}),
        (Read(table="made", changes=True), {}),
        (Read(table="there_before"), {}),
        (Read(source="lines"), {}),
    ],
)
def test_a_stream_of_a_table_that_the_run_made_is_read_from_its_first_version(read, options):
    one = Step(name="s", layer="silver", reads={"rows": read}, writes=[Sink(table="t")])
    assert prepare.read_from_first_version(one, {"made"}).reads["rows"].options == options


def test_a_table_of_another_pipeline_has_to_be_there(flow):
    flow.source("lines", "text")
    flow.steps("lines: {layer: bronze, " + ROWS + ", writes: {table: lines}}\n")
    (flow.directory / "conf" / "pipelines" / "other.yml").write_text(
        "steps:\n  other: {layer: gold, reads: {rows: {table: lines}}, writes: {table: other}}\n"
    )
    bundle = flow.bundle()
    with pytest.raises(ConfigurationError) as error:
        prepare.prepare_all(
            flow.spark, [(bundle.locations_of("other"), bundle.pipelines["other"].steps["other"])], bundle.environment
        )
    assert [problem.where for problem in error.value.problems] == [f"{flow.directory}/tables/lines"]
    runner.check_pipelines(flow.spark, bundle)  # asks all pipelines: there it is still to come


def test_what_a_batch_would_fail_of_is_told_before(flow, golden):
    flow.source("rows", "json")
    sinks = {
        "types": "expect: [{between: {id: [1, 9]}}, {one_of: {n: [one, null]}}, {matches: {id: '(?P<a>x)'}}]",
        "fits": "expect: [{between: {n: [1, 9.5]}}, {one_of: {id: [one, null]}}, {between: {day: [2026-01-01, x]}}]",
        "upserted": "",
        "clustered": "",
    }
    writes = {"upserted": "mode: upsert, keys: [idd], sequence: since", "clustered": "cluster_by: [days]"}
    for name, expect in sinks.items():
        sink = ", ".join(filter(None, [f"table: {name}", writes.get(name)]))
        schema = "id STRING, n INT, day DATE"
        sinks[name] = (
            f"{name}: {{layer: bronze, reads: {{rows: {{source: rows, schema: '{schema}', "
            f"{expect}}}}}, writes: {{{sink}}}}}\n"
        )
    flow.steps("".join(sinks.values()))
    flow.bundle()
    before = flow.files()
    with pytest.raises(ConfigurationError) as error:
        flow.rehearse()
    assert flow.files() == before
    golden("steps/before_a_batch", str(error.value))
    flow.steps(
        "checked: {layer: bronze, reads: {rows: {source: rows, schema: 'id STRING'}}, "
        "expect: [{one_of: {id: [1]}}], writes: {table: checked}}\n"
    )
    with pytest.raises(ConfigurationError, match="one_of compares 'id', which is string, with 1"):
        flow.rehearse()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{keys: }", "keys must be a list of one or more column names, not None"),
        ("{keys: id}", "keys must be a list of one or more column names, not 'id'"),
        ("{keys: []}", r"keys must be a list of one or more column names, not \[\]"),
    ],
)
def test_keys_that_are_no_list_are_told_by_the_deduplication(flow, given, said):
    flow.source("rows", "json")
    flow.steps(f"""
        land:
          layer: bronze
          reads: {{rows: {{source: rows, schema: "id STRING, at TIMESTAMP"}}}}
          transform: headrace.transforms.bronze:deduplicate
          with: {given}
          writes: {{table: landed}}
        """)
    with pytest.raises(ConfigurationError, match=said):
        flow.rehearse()


@pytest.mark.parametrize("evolves", [False, True])
def test_an_upsert_into_a_table_that_lacks_a_column_is_refused_before_it_is_lost(flow, evolves):
    flow.source("rows")
    upsert = """
        land:
          layer: bronze
          reads: {{rows: {{source: rows, schema: "id STRING, n INT{more}"}}}}
          writes: {{table: landed, mode: upsert, keys: [id], sequence: n}}
          settings: {{spark.databricks.delta.schema.autoMerge.enabled: {evolves}}}
        """
    flow.feed("rows", {"id": "a", "n": 1})
    flow.steps(upsert.format(more="", evolves=evolves))
    flow.run()
    flow.feed("rows", {"id": "a", "n": 2, "email": "a@b"})
    flow.steps(upsert.format(more=", email STRING", evolves=evolves))
    if not evolves:
        with pytest.raises(ConfigurationError, match="table 'landed' has no column 'email'") as error:
            flow.run()
        (problem,) = error.value.problems
        assert problem.where == "conf/pipelines/flow.yml:6"
        flow.spark.sql(problem.fix.partition(": ")[2])
    flow.run()
    assert flow.read("landed") == [{"id": "a", "n": 2, "email": "a@b"}]


def test_keys_are_columns_and_no_fields_of_them(flow):
    flow.source("rows")
    flow.steps("""
        land:
          layer: bronze
          reads: {rows: {source: rows, schema: "who STRUCT<id: STRING>, n INT"}}
          writes: {table: landed, mode: upsert, keys: [who.id], sequence: n}
        """)
    with pytest.raises(ConfigurationError, match=r"sink 1 names a column 'who\.id' that is not there"):
        flow.rehearse()


def test_a_steps_settings_hold_in_its_query_and_nowhere_else(flow):
    flow.source("lines", "text")
    flow.feed("lines", "a")
    flow.spark.createDataFrame([("a", "Ada")], "value STRING, name STRING").write.format("delta").save(
        str(flow.directory / "tables" / "names")
    )
    flow.steps(
        "names: {layer: bronze, reads: {names: {source: lines}}, writes: {table: names}}\n"
        + step(
            "numbered",
            "settings: {spark.sql.shuffle.partitions: 3, spark.headrace.test: 1}",
            reads="reads: {rows: {source: lines}, names: {table: names, static: true}}",
        )
    )
    before = flow.spark.conf.get("spark.sql.shuffle.partitions")
    flow.run("numbered")
    assert [row["partitions"] for row in flow.read("t_numbered")] == ["3"]
    checkpoint = flow.directory / "checkpoints/flow/numbered/1/spark/offsets/0"
    assert '"spark.sql.shuffle.partitions":"3"' in checkpoint.read_text()
    assert flow.spark.conf.get("spark.sql.shuffle.partitions") == before
    assert flow.spark.conf.get("spark.headrace.test", None) is None


def unmatched(rows, names):
    return names.join(rows, "value", "left_anti")


def added(rows, names):
    return rows.select("value").union(names.select("value"))


def outer(rows, others):
    return rows.join(others.select("value"), "value", "left")


@pytest.mark.parametrize(
    ("transform", "more", "reason"),
    [
        (
            "unmatched",
            "names: {table: names, static: true}",
            "LeftAnti joins with a streaming DataFrame/Dataset on the",
        ),
        ("added", "names: {table: names, static: true}", "Union between streaming and batch DataFrames/Datasets is"),
        ("outer", "others: {source: lines}", "Stream-stream LeftOuter join between two streaming DataFrame/Datasets"),
        ("total", "", "Invalid streaming output mode: append. This output mode is not supported for streaming aggre"),
    ],
)
def test_sparks_own_reason_is_in_the_message(flow, transform, more, reason):
    flow.source("lines", "text")
    flow.spark.createDataFrame([("a", "Ada")], "value STRING, name STRING").write.format("delta").save(
        str(flow.directory / "tables" / "names")
    )
    names = "names: {layer: bronze, reads: {names: {source: lines}}, writes: {table: names}}\n"
    reads = f"reads: {{rows: {{source: lines}}{', ' if more else ''}{more}}}"
    flow.steps(names + step(transform, reads=reads))
    with pytest.raises(ConfigurationError) as error:
        flow.rehearse()
    messages = [problem.message for problem in error.value.problems]
    assert any(message.startswith(f"Spark cannot stream this query: {reason}") for message in messages), messages
