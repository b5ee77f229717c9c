"""Problems between keys, steps, files and environments, and bundles that load."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from bundle_files import DATABRICKS, LOCAL, problems_of
from editor_schemas import schema_errors
from headrace.config.load import find_root, load_all, load_bundle
from headrace.errors import ConfigurationError

REPOSITORY = Path(__file__).parents[2]
WriteBundle = Callable[[Mapping[str, str | bytes | None]], Path]
Golden = Callable[[str, str], None]

# Each case is one pipeline file; the environment is the small one.
PIPELINES = {
    "unknown_names": """\
steps:
  land:
    layer: bronze
    reads: {rows: {source: tics}}
    writes: [{table: landed}, {topic: alerts}]
  export:
    layer: bronze
    reads: {rows: {source: ticks}}
    writes: {folder: exports}
  silver:
    layer: silver
    reads: {rows: {table: landd}}
    writes: {table: silver}
""",
    "exactly_one": """\
steps:
  both:
    layer: bronze
    reads: {rows: {source: ticks, table: neither}}
    writes: {table: one, console: true}
  none:
    layer: bronze
    reads: {rows: {options: {a: b}}}
    expect: [{not_null: [a], matches: {b: c}}, {on_fail: drop}]
    writes: [{table: neither}, {console: false}]
""",
    "two_writers": """\
steps:
  one:
    layer: bronze
    reads: {rows: {source: ticks}}
    writes: {table: landed}
  two:
    layer: bronze
    reads: {rows: {source: ticks}}
    writes: [{table: Landed}, {table: other}, {table: other}]
""",
    "cycle": """\
steps:
  first:
    layer: bronze
    reads: {rows: {table: b}}
    writes: {table: a}
  second:
    layer: bronze
    reads: {rows: {table: a}}
    writes: {table: b}
  self:
    layer: bronze
    reads: {rows: {table: c, static: true}, ticks: {source: ticks}}
    transform: a:b
    writes: {table: c}
""",
    "changing_tables": """\
steps:
  dimension:
    layer: bronze
    reads: {rows: {source: ticks}}
    writes: {table: dimension, mode: upsert, keys: [value], sequence: timestamp}
  counted:
    layer: gold
    reads: {rows: {source: ticks}}
    writes: {table: counted}
    output: complete
  wrong:
    layer: gold
    reads: {rows: {table: dimension}, others: {table: counted}}
    transform: a:b
    writes: {table: wrong}
  right:
    layer: gold
    reads: {rows: {table: dimension, changes: true}, fixed: {table: counted, static: true}}
    transform: a:b
    writes: {table: right}
  needless:
    layer: gold
    reads: {rows: {table: right, changes: true}}
    writes: {table: needless}
""",
    "sink_keys": """\
steps:
  land:
    layer: bronze
    reads: {rows: {source: ticks}}
    writes:
      - {table: a, mode: upsert}
      - {table: b, mode: upsert, keys: [value], sequence: timestamp}
      - {table: c, keys: [value]}
      - {table: d, mode: replace, sequence: timestamp}
      - {table: e, partition_by: [a], cluster_by: [b], format: parquet}
      - {memory: f, mode: replace, partition_by: [a]}
      - {folder: g}
      - {console: true, format: json}
""",
    "unsupported_sinks": """\
steps:
  rules: {layer: bronze, reads: {rows: {source: ticks}}, expect: [{not_null: [a], on_fail: drop}], writes: {memory: a}}
  alone: {layer: bronze, reads: {rows: {source: ticks}}, transform: a:b, row_wise: true, writes: {memory: b}}
  changed: {layer: bronze, reads: {rows: {source: ticks}}, output: update, writes: {memory: c}}
  updated: {layer: bronze, reads: {rows: {source: ticks}}, output: update, writes: {table: d}}
  whole: {layer: bronze, reads: {rows: {source: ticks}}, output: complete, writes: [{table: e}, {memory: f}]}
  right: {layer: bronze, reads: {rows: {source: ticks}}, output: complete, writes: {memory: g}}
  same: {layer: bronze, reads: {rows: {source: ticks}}, writes: {memory: g}}
  merged:
    layer: bronze
    reads: {rows: {source: ticks}}
    writes: {table: h, mode: upsert, keys: [value], sequence: timestamp, options: {mergeSchema: true}}
""",
    "read_keys": """\
steps:
  land:
    layer: bronze
    reads: {rows: {source: ticks, static: true, changes: true}}
    writes: {table: landed}
  silver:
    layer: silver
    reads:
      rows: {table: landed, schema: a INT, expect: [{not_null: [a]}], max_future: 1 minute}
      more: {table: landed, static: true, changes: true, watermark: {column: timestamp, delay: 1 minute}}
    transform: a:b
    writes: {table: silver}
""",
    "step_keys": """\
steps:
  land:
    layer: bronze
    reads: {rows: {source: ticks}}
    with: {keys: [a]}
    row_wise: true
    writes: {table: landed}
  two:
    layer: silver
    reads: {rows: {table: landed}, more: {table: landed}}
    writes: []
  still:
    layer: silver
    reads: {rows: {table: landed, static: true}}
    writes: {table: still}
  nothing: {layer: silver, reads: {}, writes: {table: nothing}}
  next: {layer: bronze, reads: {rows: {source: ticks}}, writes: {table: next}, version: 2}
""",
    "schemas": """\
steps:
  without:
    layer: bronze
    reads: {rows: {source: orders}}
    writes: {table: without}
  both:
    layer: bronze
    reads: {rows: {source: orders, schema: "order_id STRING, quantity INT", infer: true}}
    writes: {table: both}
  neither:
    layer: bronze
    reads: {rows: {source: orders, schema: shop.orders.ORDER}}
    writes: {table: neither}
  import: {layer: bronze, reads: {rows: {source: orders, schema: shop.orders:ORDER}}, writes: {table: i}}
  columns: {layer: bronze, reads: {rows: {source: orders, schema: "`order id`: decimal(10,2)"}}, writes: {table: d}}
  inferred: {layer: bronze, reads: {rows: {source: orders, infer: true}}, writes: {table: f}}
""",
    "rows_cannot_be_checked": """\
steps:
  windows:
    layer: gold
    reads: {rows: {source: orders, schema: a INT}}
    transform: shop:windows
    writes: {table: windows}
  timed:
    layer: bronze
    reads: {rows: {source: ticks, watermark: {column: timestamp, delay: 1 minute}}, more: {table: windows}}
    transform: headrace.transforms.bronze:deduplicate
    with: {keys: [value]}
    writes: {table: timed}
  row_wise:
    layer: bronze
    reads: {rows: {source: orders, schema: a INT}, dimension: {table: windows, static: true}}
    transform: shop:one_row
    row_wise: true
    writes: {table: row_wise}
""",
    "no_quarantine": """\
steps:
  land:
    layer: bronze
    reads: {rows: {source: ticks}}
    expect: [{not_null: [value]}]
    writes: {console: true}
  warned:
    layer: bronze
    reads: {rows: {source: ticks}}
    expect: [{not_null: [value], on_fail: warn}, {one_of: {value: [1]}, on_fail: drop}]
    writes: {console: true}
""",
    "quarantine_collision": """\
steps:
  land:
    layer: bronze
    reads: {rows: {source: orders, schema: a INT}}
    writes: {table: landed}
  taken:
    layer: bronze
    reads: {rows: {source: ticks}}
    writes: {table: landed_quarantine}
  reader:
    layer: silver
    reads: {rows: {table: landed_quarantine}}
    writes: {table: reader}
""",
    "bad_pattern": """\
steps:
  land:
    layer: bronze
    reads: {rows: {source: ticks}}
    expect: [{matches: {a: "(unclosed"}}, {matches: {a: '\\\\p{Alpha}++'}}]
    writes: {table: landed}
""",
}

# Of these, `whole`, `any` and `documents` can be decoded.
ENCODED = """\
steps:
  names: {layer: bronze, reads: {rows: {source: names, schema: id STRING}}, writes: {table: names}}
  lines: {layer: bronze, reads: {rows: {source: lines, options: {Encoding: UTF-16LE}}}, writes: {table: lines}}
  whole: {layer: bronze, reads: {rows: {source: whole, schema: id STRING}}, writes: {table: whole}}
  marked: {layer: bronze, reads: {rows: {source: marked, schema: id STRING}}, writes: {table: marked}}
  events: {layer: bronze, reads: {rows: {source: events, schema: id STRING}}, writes: {table: events}}
  any:
    layer: bronze
    reads: {rows: {source: names, schema: id STRING}}
    writes: {table: any}
    settings: {spark.sql.legacy.javaCharsets: true}
  documents: {layer: bronze, reads: {rows: {source: documents, schema: id STRING}}, writes: {table: documents}}
"""
ENCODINGS = """\
sources:
  names: {kind: files, format: json, path: data, options: {encoding: windows-1252}}
  lines: {kind: files, format: text, path: data}
  whole: {kind: files, format: json, path: data, options: {encoding: UTF-16, multiLine: true}}
  marked: {kind: files, format: csv, path: data, options: {charset: UTF-16, lineSep: "\\n"}}
  events: {kind: kafka, format: json, servers: "a:1", topics: [a], options: {encoding: latin1}}
  documents: {kind: files, format: xml, path: data, options: {encoding: windows-1252}}
"""

ENVIRONMENTS = {
    "engine_too_small": LOCAL.replace("local}", "local, memory: 511m}") + "sources: {ticks: {kind: rate}}\n",
    "tables_both": """\
engine: {kind: spark, master: yarn}
tables: {root: tables, catalog: main}
checkpoints: checkpoints
sources: {ticks: {kind: rate}}
""",
    "tables_half": """\
engine: {kind: spark, master: yarn}
tables: {catalog: main}
checkpoints: checkpoints
sources: {ticks: {kind: rate}}
""",
    "tables_in_a_catalog": LOCAL.replace("root: tables", "catalog: a, schema: b") + "sources: {ticks: {kind: rate}}\n",
    "sources": LOCAL
    + """\
sources:
  ticks: {kind: rate}
  neither: {kind: kafka, servers: "a:1"}
  both: {kind: kafka, servers: "a:1", topics: [a], pattern: a.*}
  misspelled: {kind: files, format: jsno, path: data}
  uppercase: {kind: files, format: JSON, path: data}
  other: {kind: files, format: com.example.columns, path: data}
""",
    "engine_settings": LOCAL
    + """\
sources: {ticks: {kind: rate}}
settings: {spark.master: "local[4]", spark.driver.memory: 4g, spark.sql.shuffle.partitions: 4}
""",
}

# The mistakes that a JSON Schema cannot express: they concern several steps or files, or how Spark reads a value.
UNKNOWN_TO_EDITORS = {
    "bad_pattern",
    "changing_tables",
    "cycle",
    "engine_settings",
    "engine_too_small",
    "no_quarantine",
    "quarantine_collision",
    "rows_cannot_be_checked",
    "tables_in_a_catalog",
    "two_writers",
    "unknown_names",
    "unsupported_sinks",
}


@pytest.mark.parametrize("case", PIPELINES)
def test_bad_pipeline(case: str, write_bundle: WriteBundle, golden: Golden) -> None:
    golden(f"config/{case}", problems_of(write_bundle({"conf/pipelines/p.yml": PIPELINES[case]})))
    assert bool(schema_errors("pipeline", PIPELINES[case])) == (case not in UNKNOWN_TO_EDITORS)


@pytest.mark.parametrize("case", ENVIRONMENTS)
def test_bad_environment(case: str, write_bundle: WriteBundle, golden: Golden) -> None:
    golden(f"config/{case}", problems_of(write_bundle({"conf/local.yml": ENVIRONMENTS[case]})))
    assert bool(schema_errors("environment", ENVIRONMENTS[case])) == (case not in UNKNOWN_TO_EDITORS)


def test_encodings_that_cannot_be_decoded(write_bundle: WriteBundle, golden: Golden) -> None:
    root = write_bundle({"conf/pipelines/p.yml": ENCODED, "conf/local.yml": LOCAL + ENCODINGS})
    golden("config/encodings", problems_of(root))


def test_problems_of_all_files_are_reported_together(write_bundle: WriteBundle, golden: Golden) -> None:
    pipeline = """\
        steps:
          land:
            layer: bronze
            reads: {rows: {source: ticks, watermrk: {column: timestamp, delay: 1 minute}}}
            transfrom: a:b
            name: land
            writes: {table: landed, mod: append}
        step: {}
        """
    environment = LOCAL.replace("local}", "local, cores: 0, memory: 2 GB}")
    files = {
        "conf/pipelines/p.yml": dedent(pipeline),
        "conf/pipelines/q.yml": "steps:\n\tland: {}\n",
        "conf/local.yml": environment + "sources: {ticks: {kind: rate}}\n",
        "databricks.yml": "bundle: {name: shop, name: ship}\n",
    }
    golden("config/all_files", problems_of(write_bundle(files)))


def test_problem_of_a_pipeline_is_reported_once_for_all_environments(write_bundle: WriteBundle) -> None:
    files = {"conf/pipelines/p.yml": PIPELINES["changing_tables"], "conf/dev.yml": DATABRICKS}
    root = write_bundle({**files, "databricks.yml": "bundle: {name: shop}\ntargets: {dev: {}}\n"})
    with pytest.raises(ConfigurationError) as caught:
        load_all(root)
    assert len(caught.value.problems) == len(set(caught.value.problems)) == 3


def test_relative_paths_are_errors_if_releases_are_deployed_to_a_cluster(
    write_bundle: WriteBundle, golden: Golden
) -> None:
    environment = """\
        engine: {kind: spark, master: "spark://a:7077", releases: releases}
        tables: {root: tables}
        checkpoints: checkpoints
        sources: {ticks: {kind: rate}, lines: {kind: files, format: text, path: "file:/data"}}
        folders: {out: out}
        """
    golden("config/relative_on_a_cluster", problems_of(write_bundle({"conf/local.yml": dedent(environment)})))


def test_relative_paths_are_errors_on_databricks(write_bundle: WriteBundle, golden: Golden) -> None:
    dev = (
        DATABRICKS.replace("/Volumes/dev/shop/checkpoints", "checkpoints") + "folders: {out: exports, away: s3://b/x}\n"
    )
    files = {"conf/dev.yml": dev, "databricks.yml": "bundle: {name: shop}\ntargets: {dev: {}}\n"}
    golden("config/relative_on_databricks", problems_of(write_bundle(files), "dev"))


def test_two_pipelines_cannot_write_the_same_table(write_bundle: WriteBundle, golden: Golden) -> None:
    copy = {"conf/pipelines/q.yml": (write_bundle({}) / "conf/pipelines/p.yml").read_text()}
    golden("config/two_pipelines", problems_of(write_bundle(copy)))


def test_two_steps_cannot_write_the_same_folder_under_two_names(write_bundle: WriteBundle, golden: Golden) -> None:
    step = "  {0}: {{layer: bronze, reads: {{rows: {{source: ticks}}}}, writes: {{folder: {0}}}}}\n"
    files = {
        "conf/pipelines/p.yml": "steps:\n" + step.format("out"),
        "conf/pipelines/q.yml": "steps:\n" + step.format("away"),
        "conf/local.yml": LOCAL + "sources: {ticks: {kind: rate}}\nfolders: {out: exports, away: exports/}\n",
    }
    golden("config/one_folder", problems_of(write_bundle(files)))


def test_cycle_through_two_pipelines(write_bundle: WriteBundle, golden: Golden) -> None:
    step = "steps:\n  {0}:\n    layer: bronze\n    reads: {{rows: {{table: {1}}}}}\n    writes: {{table: {0}}}\n"
    files = {"conf/pipelines/p.yml": step.format("a", "b"), "conf/pipelines/q.yml": step.format("b", "a")}
    golden("config/cycle_of_pipelines", problems_of(write_bundle(files)))


def test_schema_of_a_kafka_source_cannot_be_inferred(write_bundle: WriteBundle, golden: Golden) -> None:
    pipeline = "steps: {a: {layer: bronze, reads: {rows: {source: %s, infer: true}}, writes: {table: a}}}"
    local = LOCAL + 'sources: {events: {kind: kafka, servers: "a:1", topics: [a]}}\n'
    files = {"conf/pipelines/p.yml": pipeline % "events", "conf/local.yml": local}
    golden("config/kafka_inferred", problems_of(write_bundle(files)))


def test_bundle_without_environments_or_pipelines(write_bundle: WriteBundle, golden: Golden) -> None:
    root = write_bundle({"conf/local.yml": None})
    with pytest.raises(ConfigurationError) as caught:
        load_all(root)
    (root / "conf/pipelines/p.yml").unlink()
    golden("config/no_environment_or_pipeline", f"{caught.value}\n{problems_of(root)}")


def test_pipeline_of_the_repository_is_loaded() -> None:
    bundle = load_bundle(REPOSITORY)
    steps = bundle.pipelines["orders"].steps
    assert list(steps) == ["customers", "bronze_orders", "silver_orders", "gold_revenue"]
    assert steps["customers"].writes[0].keys == ("customer_id",)
    assert steps["bronze_orders"].with_ == {"keys": ["order_id"]}
    assert [rule.on_fail for rule in steps["bronze_orders"].reads["orders"].expect] == ["quarantine"] * 2 + ["warn"]
    assert steps["bronze_orders"].reads["orders"].expect[1].between == {"quantity": (1, 1000)}
    assert bundle.where("orders", "steps", "silver_orders", "reads", "orders") == "conf/pipelines/orders.yml:23"


def test_root_is_found_from_a_subdirectory(write_bundle: WriteBundle, tmp_path: Path) -> None:
    root = write_bundle({"src/shop/a.py": ""})
    assert find_root(root / "src" / "shop") == root
    assert find_root(root / "conf") == root
    with pytest.raises(ConfigurationError, match="there is no bundle here"):
        find_root(tmp_path)
