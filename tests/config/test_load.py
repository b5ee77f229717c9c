"""Bundles that cannot be carried out: small YAML in, every problem with its line and fix out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from headrace.config.load import find_root, load_all, load_bundle
from headrace.config.models import DatabricksEngine, Every, KafkaSource, Secret
from headrace.errors import ConfigurationError

REPOSITORY = Path(__file__).parents[2]
WriteBundle = Callable[[Mapping[str, str | bytes | None]], Path]
Golden = Callable[[str, str], None]

LOCAL_TOP = "engine: {kind: local}\ntables: {root: tables}\ncheckpoints: checkpoints\n"
DEV = """\
engine: {kind: databricks}
tables: {catalog: dev, schema: shop}
checkpoints: /Volumes/dev/shop/checkpoints
sources: {ticks: {kind: rate}}
"""

# Each is one pipeline file; the environment is the small one.
PIPELINES: dict[str, str | bytes] = {
    "unknown_key": """\
steps:
  land:
    layer: bronze
    reads: {rows: {source: ticks, watermrk: {column: timestamp, delay: 1 minute}}}
    transfrom: a:b
    name: land
    writes: {table: landed, mod: append}
step: {}
""",
    "wrong_type": """\
steps:
  land:
    layer: bronce
    reads: {rows: {source: 5, static: maybe, options: {a: [1]}}}
    row_wise: 1
    version: one
    expect: {not_null: [a]}
    writes: {table: landed, keys: order_id}
  silver:
    - layer: silver
  9lives: {layer: gold, reads: {a-b: {table: landed}}, writes: []}
""",
    "one_sink_on_many_lines": """\
steps:
  land:
    layer: bronze
    reads: {rows: {source: ticks}}
    writes:
      table: landed
      mode: upsert
      key: [value]
  other:
    layer: bronze
    reads: {rows: {source: ticks}}
    writes:
      table: other
      mode: history
""",
    "missing_keys": """\
steps:
  land:
    reads: {rows: {source: ticks, watermark: {column: timestamp}}}
    expect: [{between: {value: [1]}}, {between: {value: [1, 2, 3]}}]
""",
    "not_names": """\
steps:
  land:
    layer: bronze
    reads: {rows: {source: ticks}}
    transform: headrace.transforms.bronze.deduplicate
    expect: [{rule: amount_matches}]
    writes: {table: my-table}
""",
    "not_a_duration": """\
steps:
  land:
    layer: bronze
    reads: {rows: {source: ticks, max_future: soon, watermark: {column: timestamp, delay: 10 minuets}}}
    writes: {table: landed}
""",
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
    "must_grow": """\
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
      - {table: b, mode: history, keys: [value]}
      - {table: c, keys: [value]}
      - {table: d, mode: replace, sequence: timestamp}
      - {table: e, partition_by: [a], cluster_by: [b], format: parquet}
      - {memory: f, mode: replace, partition_by: [a]}
      - {folder: g}
      - {console: true, format: json}
""",
    "sinks_that_cannot": """\
steps:
  judged: {layer: bronze, reads: {rows: {source: ticks}}, expect: [{not_null: [a], on_fail: drop}], writes: {memory: a}}
  alone: {layer: bronze, reads: {rows: {source: ticks}}, transform: a:b, row_wise: true, writes: {memory: b}}
  changed: {layer: bronze, reads: {rows: {source: ticks}}, output: update, writes: {memory: c}}
  told_again: {layer: bronze, reads: {rows: {source: ticks}}, output: update, writes: {table: d}}
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
    "cannot_judge": """\
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
    "duplicate_keys": """\
steps:
  land:
    layer: bronze
    reads: {rows: {source: ticks}}
    writes: {table: landed}
    layer: silver
  land:
    layer: gold
""",
    "yaml_surprises": """\
steps:
  on:
    layer: bronze
  land:
    layer: bronze
    reads: {rows: {source: ticks, options: {a: yes, b: 1_000, c: 12:30, d: 010, e: Off, 12: x, f: "12:30", g: "no"}}}
    writes: {table: landed}
""",
    "values_in_pipelines": """\
steps:
  land:
    layer: bronze
    reads: {rows: {source: ticks}}
    writes: {table: landed, options: {path: "${place}/x"}}
""",
    "bad_pattern": """\
steps:
  land:
    layer: bronze
    reads: {rows: {source: ticks}}
    expect: [{matches: {a: "(unclosed"}}, {matches: {a: '\\\\p{Alpha}++'}}]
    writes: {table: landed}
""",
    "empty": "",
    "only_comments": "# nothing\n",
    "no_steps": "steps:\n",
    "not_a_mapping": "- steps\n",
    "not_utf8": b"steps:\n  land: {layer: \xff}\n",
    "control_character": b"steps: \x07\n",
    "tab": "steps:\n\tland: {}\n",
    "syntax": "steps:\n  land: {layer: bronze\n  more: x\n",
    "two_documents": "steps: {}\n---\nsteps: {}\n",
    "tag": "steps: !!python/object/apply:os.system ['true']\n",
    "merge_key": "steps:\n  a: &a {layer: bronze, reads: {rows: {source: ticks}}, writes: {table: a}}\n  b: {<<: *a}\n",
    "key_not_a_word": "steps:\n  [a, b]: {}\n  1.5: {}\n  null: {}\n",
    "deep": "steps: " + "[" * 5000 + "]" * 5000,
    "alias_bomb": "a0: &a0 [x]\n" + "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]\n" for n in range(9)),
    "many_aliases": "a: &a [x]\nsteps: [" + "*a, " * 60_000 + "]\n",
    "alias_of_itself": "steps: &steps\n  land: *steps\n",
    "huge": "a: &a {}\nsteps: [" + "*a, " * 2_500_000 + "]\n",
}

# Steps and sources with encodings: those of whole, any and documents can be decoded.
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
    "environment_keys": """\
engine: {kind: local, cors: 2}
tables: {root: tables}
checkpoint: checkpoints
sources:
  ticks: {kind: rat}
  orders: {kind: files, path: data, fromat: json}
  events: {kind: kafka, servers: [a], format: avro, security: {mechanism: MD5, username: 5, password: plain}}
  nothing: {}
settings: {a: [1]}
""",
    "engine_sizes": LOCAL_TOP.replace("local}", "local, cores: 0, memory: 2 GB}") + "sources: {ticks: {kind: rate}}\n",
    "engine_too_small": LOCAL_TOP.replace("local}", "local, memory: 511m}") + "sources: {ticks: {kind: rate}}\n",
    "unknown_engine": LOCAL_TOP.replace("kind: local", "kind: flink") + "sources: {ticks: {kind: rate}}\n",
    "triggers": LOCAL_TOP
    + """\
sources: {ticks: {kind: rate}}
trigger: {every: 5 lightyears}
triggers: {land: availble_now, lnd: once, silver: [once]}
""",
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
    "tables_in_a_catalog": LOCAL_TOP.replace("root: tables", "catalog: a, schema: b")
    + "sources: {ticks: {kind: rate}}\n",
    "sources": LOCAL_TOP
    + """\
sources:
  ticks: {kind: rate}
  neither: {kind: kafka, servers: "a:1"}
  both: {kind: kafka, servers: "a:1", topics: [a], pattern: a.*}
  slip: {kind: files, format: jsno, path: data}
  shouted: {kind: files, format: JSON, path: data}
  other: {kind: files, format: com.example.columns, path: data}
""",
    "engine_settings": LOCAL_TOP
    + """\
sources: {ticks: {kind: rate}}
settings: {spark.master: "local[4]", spark.driver.memory: 4g, spark.sql.shuffle.partitions: 4}
""",
    "values": LOCAL_TOP
    + """\
sources: {ticks: {kind: rate}, files: {kind: files, format: text, path: "data/${usr}/${a-b}/${unclosed"}}
values: {user: {required: true}, other: {required: false}, list: [1], nested: "/data/${user}"}
folders: {out: "${user:-me}"}
""",
    "brace_in_flow": LOCAL_TOP.replace("root: tables", "root: tables/${user}"),
}


def _problems(root: Path, environment: str = "local", values: Mapping[str, str] | None = None) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load_bundle(root, environment, values or {})
    return str(caught.value)


@pytest.mark.parametrize("case", PIPELINES)
def test_bad_pipeline(case: str, write_bundle: WriteBundle, golden: Golden) -> None:
    golden(f"config/{case}", _problems(write_bundle({"conf/pipelines/p.yml": PIPELINES[case]})))


@pytest.mark.parametrize("case", ENVIRONMENTS)
def test_bad_environment(case: str, write_bundle: WriteBundle, golden: Golden) -> None:
    golden(f"config/{case}", _problems(write_bundle({"conf/local.yml": ENVIRONMENTS[case]})))


def test_encodings_that_cannot_be_decoded(write_bundle: WriteBundle, golden: Golden) -> None:
    root = write_bundle({"conf/pipelines/p.yml": ENCODED, "conf/local.yml": LOCAL_TOP + ENCODINGS})
    golden("config/encodings", _problems(root))


def test_problems_of_all_files_come_together(write_bundle: WriteBundle, golden: Golden) -> None:
    files = {
        "conf/pipelines/p.yml": PIPELINES["unknown_key"],
        "conf/pipelines/q.yml": PIPELINES["tab"],
        "conf/local.yml": ENVIRONMENTS["engine_sizes"],
        "databricks.yml": "bundle: {name: shop, name: ship}\n",
    }
    golden("config/all_files", _problems(write_bundle(files)))


def test_a_slip_of_the_pen_hides_no_other_problem(write_bundle: WriteBundle, golden: Golden) -> None:
    pipeline = """\
        steps:
          land:
            layer: bronce
            reads: {rows: {source: tocks, expct: [{not_null: [a]}]}}
            writes: {tabel: landed, mode: upsrt, keys: [a]}
            transfrm: "headrace.transforms.bronze:deduplicate"
          look:
            layer: silver
            reads: {rows: {table: landed_quarantine}, others: {table: landd, static: true}}
            write: {table: looked}
          again: {layer: gold, reads: {rows: {table: looked}}, writes: {table: more}}
        """
    environment = (
        LOCAL_TOP + "sources: {ticks: {kind: fils, format: json, path: data}}\nsettngs: {spark.master: local}\n"
    )
    golden(
        "config/slips",
        _problems(write_bundle({"conf/pipelines/p.yml": dedent(pipeline), "conf/local.yml": environment})),
    )


@pytest.mark.parametrize("broken", ["step", "environment"])
def test_a_quarantine_is_not_called_unknown_while_nobody_can_say(write_bundle: WriteBundle, broken: str) -> None:
    pipeline = """\
        steps:
          land:
            layer: bronze
            version: {version}
            reads: {{rows: {{source: lines, schema: a STRING}}}}
            writes: {{table: landed}}
          look: {{layer: silver, reads: {{rows: {{table: landed_quarantine}}}}, writes: {{table: looked}}}}
        """
    json = "sources: {lines: {kind: files, format: json, path: data}}\n"
    files = {
        "conf/pipelines/p.yml": dedent(pipeline).format(version="one" if broken == "step" else 1),
        "conf/local.yml": LOCAL_TOP.replace("local", "local, cores: two" if broken == "environment" else "local")
        + json,
    }
    assert [line for line in _problems(write_bundle(files)).splitlines() if line.startswith("Error")] == [
        "Error: step 'land', version: must be a whole number, not 'one'"
        if broken == "step"
        else "Error: engine, cores: must be a whole number, not 'two'"
    ]


def test_a_file_that_cannot_be_read_makes_no_problems_in_others(write_bundle: WriteBundle) -> None:
    files = {
        "conf/pipelines/p.yml": "steps:\n\tland: {}\n",
        "conf/pipelines/q.yml": "steps:\n  s: {layer: silver, reads: {rows: {table: landed}}, writes: {table: t}}\n",
        "conf/local.yml": LOCAL_TOP + "triggers: {land: once}\nsources: {ticks: {kind: rate}}\n",
    }
    told = [line for line in _problems(write_bundle(files)).splitlines() if line.startswith("Error")]
    assert told == ["Error: a tab stands where YAML wants spaces"]


def test_what_editors_leave_beside_files_is_not_read(write_bundle: WriteBundle) -> None:
    root = write_bundle({"conf/._local.yml": b"\0", "conf/pipelines/._p.yml": b"\0", "conf/.x.yaml": "a"})
    (root / "conf/pipelines/.#p.yml").symlink_to("nowhere")
    assert [bundle.environment.name for bundle in load_all(root)] == ["local"]


def test_what_a_release_would_hold_for_itself_is_refused_on_a_cluster(
    write_bundle: WriteBundle, golden: Golden
) -> None:
    environment = """\
        engine: {kind: spark, master: "spark://a:7077", releases: releases}
        tables: {root: tables}
        checkpoints: checkpoints
        sources: {ticks: {kind: rate}, lines: {kind: files, format: text, path: "file:/data"}}
        folders: {out: out}
        """
    golden("config/relative_on_a_cluster", _problems(write_bundle({"conf/local.yml": dedent(environment)})))


def test_a_problem_of_a_pipeline_is_told_once_for_all_environments(write_bundle: WriteBundle) -> None:
    files = {"conf/pipelines/p.yml": PIPELINES["must_grow"], "conf/dev.yml": DEV}
    root = write_bundle({**files, "databricks.yml": "bundle: {name: shop}\ntargets: {dev: {}}\n"})
    with pytest.raises(ConfigurationError) as caught:
        load_all(root)
    assert len(caught.value.problems) == len(set(caught.value.problems)) == 3


def test_two_pipelines_may_not_write_one_table(write_bundle: WriteBundle, golden: Golden) -> None:
    same = {"conf/pipelines/q.yml": (write_bundle({}) / "conf/pipelines/p.yml").read_text()}
    golden("config/two_pipelines", _problems(write_bundle(same)))


def test_two_steps_may_not_write_one_folder_under_two_names(write_bundle: WriteBundle, golden: Golden) -> None:
    step = "  {0}: {{layer: bronze, reads: {{rows: {{source: ticks}}}}, writes: {{folder: {0}}}}}\n"
    files = {
        "conf/pipelines/p.yml": "steps:\n" + step.format("out"),
        "conf/pipelines/q.yml": "steps:\n" + step.format("away"),
        "conf/local.yml": LOCAL_TOP + "sources: {ticks: {kind: rate}}\nfolders: {out: exports, away: exports/}\n",
    }
    golden("config/one_folder", _problems(write_bundle(files)))


def test_a_circle_through_two_pipelines(write_bundle: WriteBundle, golden: Golden) -> None:
    step = "steps:\n  {0}:\n    layer: bronze\n    reads: {{rows: {{table: {1}}}}}\n    writes: {{table: {0}}}\n"
    files = {"conf/pipelines/p.yml": step.format("a", "b"), "conf/pipelines/q.yml": step.format("b", "a")}
    golden("config/circle_of_pipelines", _problems(write_bundle(files)))


def test_unknown_environment(write_bundle: WriteBundle, golden: Golden) -> None:
    root = write_bundle({"conf/staging.yml": DEV})
    golden("config/unknown_environment", _problems(root, "stagin") + "\n" + _problems(root, "prod"))


def test_files_that_are_not_read(write_bundle: WriteBundle, golden: Golden) -> None:
    files = {"conf/pipelines/q.yaml": "steps: {}", "conf/prod.yaml": "a: 1", "conf/pipelines/my-orders.yml": "a: 1"}
    golden("config/files_not_read", _problems(write_bundle(files)))


def test_kafka_cannot_be_inferred(write_bundle: WriteBundle, golden: Golden) -> None:
    pipeline = "steps: {a: {layer: bronze, reads: {rows: {source: %s, infer: true}}, writes: {table: a}}}"
    local = LOCAL_TOP + 'sources: {events: {kind: kafka, servers: "a:1", topics: [a]}}\n'
    files = {"conf/pipelines/p.yml": pipeline % "events", "conf/local.yml": local}
    golden("config/kafka_inferred", _problems(write_bundle(files)))


def test_relative_paths_have_no_place_on_databricks(write_bundle: WriteBundle, golden: Golden) -> None:
    dev = DEV.replace("/Volumes/dev/shop/checkpoints", "checkpoints") + "folders: {out: exports, away: s3://b/x}\n"
    files = {"conf/dev.yml": dev, "databricks.yml": "bundle: {name: shop}\ntargets: {dev: {}}\n"}
    golden("config/relative_on_databricks", _problems(write_bundle(files), "dev"))


@pytest.mark.parametrize(
    ("case", "given"),
    [
        ("value_missing", {}),
        ("value_not_declared", {"user": "ann", "usr": "bob"}),
        ("value_not_a_number", {"user": "ann", "cores": "two"}),
    ],
)
def test_values_given(case: str, given: dict[str, str], write_bundle: WriteBundle, golden: Golden) -> None:
    local = LOCAL_TOP + "sources: {ticks: {kind: rate}}\nvalues: {user: {required: true}, cores: 2}\n"
    golden(f"config/{case}", _problems(write_bundle({"conf/local.yml": local}), values=given))


def test_values_are_put_in(write_bundle: WriteBundle) -> None:
    local = """\
engine: {kind: local, cores: "${cores}", memory: 2g}
tables: {root: "/data/${user}-${cores}"}
checkpoints: checkpoints/${user}
sources: {ticks: {kind: rate}}
values:
  user: {required: true}
  cores: 3
"""
    root = write_bundle({"conf/local.yml": local})
    loaded = load_bundle(root, values={"user": "010"}).environment
    assert (loaded.engine.cores, loaded.tables.root) == (3, "/data/010-3")  # type: ignore[union-attr]
    assert loaded.checkpoints == str(root / "checkpoints/010")
    assert load_bundle(root, values={"user": "a", "cores": "4"}).environment.engine.cores == 4  # type: ignore[union-attr]
    assert load_bundle(root, lenient=True).environment.tables.root == "/data/user-3"


def test_places_start_above_conf(write_bundle: WriteBundle) -> None:
    local = """\
engine: {kind: local, ivy_settings: ivy.xml}
tables: {root: s3a://bucket/tables}
checkpoints: /Volumes/a/b
sources: {ticks: {kind: files, format: text, path: data}}
folders: {out: exports, away: "abfss://x@y/z"}
"""
    root = write_bundle({"conf/local.yml": local})
    loaded = load_bundle(root).environment
    assert loaded.engine.ivy_settings == str(root / "ivy.xml")  # type: ignore[union-attr]
    assert loaded.tables.root == "s3a://bucket/tables"
    assert loaded.checkpoints == "/Volumes/a/b"
    assert loaded.sources["ticks"].path == str(root / "data")  # type: ignore[union-attr]
    assert loaded.folders == {"out": str(root / "exports"), "away": "abfss://x@y/z"}


def test_every_form_of_the_design_loads() -> None:
    bundle = load_bundle(REPOSITORY)
    steps = bundle.pipelines["orders"].steps
    assert list(steps) == ["customers", "bronze_orders", "silver_orders", "gold_revenue"]
    assert steps["customers"].writes[0].keys == ("customer_id",)
    assert steps["bronze_orders"].with_ == {"keys": ["order_id"]}
    assert [rule.on_fail for rule in steps["bronze_orders"].reads["orders"].expect] == ["quarantine"] * 2 + ["warn"]
    assert steps["bronze_orders"].reads["orders"].expect[1].between == {"quantity": (1, 1000)}
    assert bundle.where("orders", "steps", "silver_orders", "reads", "orders") == "conf/pipelines/orders.yml:23"


def test_each_environment_of_the_repository_loads() -> None:
    found = {bundle.environment.name: bundle.environment for bundle in load_all(REPOSITORY)}
    assert list(found) == ["dev", "local", "prod", "staging"]
    prod = found["prod"]
    assert prod.engine == DatabricksEngine(kind="databricks")
    assert prod.trigger == Every(every="30 seconds")
    source = prod.sources["orders"]
    assert isinstance(source, KafkaSource) and source.security is not None
    assert source.security.tls  # nothing of a password is ever sent in the clear by default
    assert source.start == "earliest"
    assert source.security.password == Secret(secret="shop/kafka-password")
    assert found["dev"].tables.schema_ == "shop_user"


def test_a_value_that_one_environment_declares_is_enough_for_all(write_bundle: WriteBundle, golden: Golden) -> None:
    assert load_all(REPOSITORY, {"user": "ann"})[0].environment.tables.schema_ == "shop_ann"
    with pytest.raises(ConfigurationError) as caught:
        load_all(REPOSITORY, {"usr": "ann"})
    golden("config/value_of_no_environment", str(caught.value))


def test_no_environment_and_no_pipeline(write_bundle: WriteBundle, golden: Golden) -> None:
    root = write_bundle({"conf/local.yml": None})
    with pytest.raises(ConfigurationError) as caught:
        load_all(root)
    (root / "conf/pipelines/p.yml").unlink()
    golden("config/nothing_there", f"{caught.value}\n{_problems(root)}")


def test_the_root_is_found_from_below(write_bundle: WriteBundle, tmp_path: Path) -> None:
    root = write_bundle({"src/shop/a.py": ""})
    assert find_root(root / "src" / "shop") == root
    assert find_root(root / "conf") == root
    with pytest.raises(ConfigurationError, match="no bundle here"):
        find_root(tmp_path)


def test_events_and_logs_lie_on_a_disk(write_bundle: WriteBundle) -> None:
    cluster = "engine: {kind: spark, master: 'spark://m:1', releases: /srv/r}\ntables: {root: 's3://b/t'}\n"
    sources = "sources:\n  ticks: {kind: rate}\n  orders: {kind: rate}\n"
    kept = {"s3://b/c": "/srv/r/.headrace", "/mnt/c": "/mnt/c/.headrace"}
    for checkpoints, directory in kept.items():
        root = write_bundle({"conf/cluster.yml": f"{cluster}checkpoints: '{checkpoints}'\n{sources}"})
        assert str(load_bundle(root, "cluster").directory) == directory
