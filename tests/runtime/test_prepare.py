"""Prepared steps: everything is validated before anything is written, and all problems are reported together."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import functions as F

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
    partitions = F.lit(rows.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    return rows.join(names, "value").withColumn("partitions", partitions)


def step(transform, *more, reads=ROWS):
    """Return a step, named after its transform, as YAML."""
    lines = [f"{transform}:", "  layer: bronze", f"  {reads}", f"  transform: {__name__}:{transform}"]
    lines += [f"  writes: {{table: t_{transform}}}", *(f"  {line}" for line in more)]
    return "\n".join(lines) + "\n"


# ── Problems ──────────────────────────────────────────────────────────────────────────────────────────


def test_problems_of_all_steps_are_reported_together_and_nothing_is_written(flow, golden):
    flow.source("lines", "text")
    flow.feed("lines", "one")
    invalid = [
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
    flow.steps("".join(invalid))
    flow.bundle()
    before, partitions = flow.files(), flow.spark.conf.get("spark.sql.shuffle.partitions")
    with pytest.raises(ConfigurationError) as error:
        flow.rehearse()
    assert flow.files() == before
    assert flow.spark.conf.get("spark.sql.shuffle.partitions") == partitions
    text = str(error.value).replace(__name__, "module")
    golden("steps/all_problems", re.sub(r"#\d+", "#1", text))

    with pytest.raises(ConfigurationError):
        flow.run()
    assert not (flow.directory / "tables").exists()
    assert not [file for file in flow.files() - before if "/spark/" in file]


def test_problem_that_only_follows_from_another_steps_problem_is_not_reported(flow):
    """Without the table of a step with problems, the steps that read it cannot be validated."""
    flow.source("lines", "text")
    readers = (
        step("unknown_column", reads="reads: {rows: {table: t_broken}}")
        + step("renamed", reads="reads: {rows: {table: t_unknown_column}}")
        + "bad_rows: {layer: silver, reads: {rows: {table: t_broken_quarantine}}, writes: {table: bad_rows}}\n"
    )
    flow.steps(step("broken", "expect: [{not_null: [value]}]") + readers + step("no_frame"))
    with pytest.raises(ConfigurationError) as error:
        flow.rehearse()
    failed, no_frame_returned = f"{__name__}:broken failed: KeyError: 'price'", f"{__name__}:no_frame returned a list"
    assert [problem.message for problem in error.value.problems] == [failed, no_frame_returned]

    flow.spark.createDataFrame([("a",)], "value STRING").write.format("delta").save(
        str(flow.directory / "tables" / "t_broken")
    )
    with pytest.raises(ConfigurationError) as error:
        flow.rehearse()
    messages = [problem.message for problem in error.value.problems]
    assert (messages[0], messages[2]) == (failed, no_frame_returned)
    assert messages[1].startswith(f"{__name__}:unknown_column failed: ")  # the existing table can be read


def test_problems_that_would_fail_a_batch_are_reported_before_it(flow, golden):
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
    ("settings", "message"),
    [
        ("{keys: }", "keys must be a list of one or more column names, not None"),
        ("{keys: id}", "keys must be a list of one or more column names, not 'id'"),
        ("{keys: []}", r"keys must be a list of one or more column names, not \[\]"),
    ],
)
def test_invalid_keys_of_the_deduplication_are_an_error(flow, settings, message):
    flow.source("rows", "json")
    flow.steps(f"""
        land:
          layer: bronze
          reads: {{rows: {{source: rows, schema: "id STRING, at TIMESTAMP"}}}}
          transform: headrace.transforms.bronze:deduplicate
          with: {settings}
          writes: {{table: landed}}
        """)
    with pytest.raises(ConfigurationError, match=message):
        flow.rehearse()


def test_key_that_is_a_field_of_a_column_is_an_error(flow):
    flow.source("rows")
    flow.steps("""
        land:
          layer: bronze
          reads: {rows: {source: rows, schema: "who STRUCT<id: STRING>, n INT"}}
          writes: {table: landed, mode: upsert, keys: [who.id], sequence: n}
        """)
    with pytest.raises(ConfigurationError, match=r"sink 1 names unknown column 'who\.id'"):
        flow.rehearse()


# ── Tables that a run creates ─────────────────────────────────────────────────────────────────────────


def test_steps_are_prepared_before_the_tables_that_they_read_exist(flow):
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
        + "bad_rows: {layer: gold, reads: {rows: {table: names_quarantine}}, writes: {table: bad_rows}}\n"
    )
    before = flow.files()
    prepared = {
        each.step.name: (each.schema.names, each.has_verdicts, each.uses_spark_sink, set(each.created_tables))
        for each in flow.rehearse()
    }
    assert flow.files() - before == {"conf/local.yml", "conf/pipelines/flow.yml"}
    assert prepared == {
        "names": (["value", "name", "at"], True, False, set()),
        "renamed": (["line"], True, False, set()),
        "lines": (["value"], False, False, set()),
        "numbered": (["value", "name", "at", "partitions"], False, False, {"lines", "names"}),
        "bad_rows": (
            ["raw", "reasons", "position", "step", "batch", "quarantined_at"],
            False,
            False,
            {"names_quarantine"},
        ),
    }


def test_table_of_another_pipeline_must_exist(flow):
    flow.source("lines", "text")
    flow.steps("lines: {layer: bronze, " + ROWS + ", writes: {table: lines}}\n")
    (flow.directory / "conf" / "pipelines" / "other.yml").write_text(
        "steps:\n  other: {layer: gold, reads: {rows: {table: lines}}, writes: {table: other}}\n"
    )
    bundle = flow.bundle()
    located = [(bundle.locations_of("other"), bundle.pipelines["other"].steps["other"])]
    prepared, problems = prepare.prepare_all(flow.spark, located, bundle.environment)
    assert prepared == []
    assert [problem.where for problem in problems] == [f"{flow.directory}/tables/lines"]
    runner.check_pipelines(flow.spark, bundle)  # checks all pipelines: there, another step will create the table


def first_of_each(rows, *, keys):
    """Keep one row for each key, as the built-in `deduplicate` does, in a function with another name."""
    return rows.dropDuplicates(keys)


def test_custom_transform_that_deduplicates_lets_bad_rows_through_to_quarantine(flow):
    flow.source("ids")
    flow.feed("ids", {"id": "a"}, {"id": "a"}, "no json", "no json either")
    flow.steps(
        'unique: {layer: bronze, reads: {rows: {source: ids, schema: "id STRING"}}, '
        f"transform: {__name__}:first_of_each, with: {{keys: [id]}}, deduplicates: true, writes: {{table: unique}}}}"
    )
    flow.run()
    assert [row["id"] for row in flow.read("unique")] == ["a"]
    assert sorted(row["raw"] for row in flow.read("unique_quarantine")) == ["no json", "no json either"]
