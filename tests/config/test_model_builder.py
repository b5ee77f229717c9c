"""Keys and values that are unknown, missing or of the wrong type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from bundle_files import LOCAL, problems_of
from editor_schemas import schema_errors

WriteBundle = Callable[[Mapping[str, str | bytes | None]], Path]
Golden = Callable[[str, str], None]


# Each case is one pipeline file.
PIPELINES = {
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
    on_failure: 1
    expect: {not_null: [a]}
    writes: {table: landed, keys: order_id}
  silver:
    - layer: silver
  9lives: {layer: gold, reads: {a-b: {table: landed}}, writes: []}
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
}
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
    "engine_sizes": LOCAL.replace("local}", "local, cores: 0, memory: 2 GB}") + "sources: {ticks: {kind: rate}}\n",
    "unknown_engine": LOCAL.replace("kind: local", "kind: flink") + "sources: {ticks: {kind: rate}}\n",
    "triggers": LOCAL
    + """\
sources: {ticks: {kind: rate}}
trigger: {every: 5 lightyears}
triggers: {land: availble_now, lnd: once, silver: [once]}
""",
}


@pytest.mark.parametrize("case", PIPELINES)
def test_bad_pipeline(case: str, write_bundle: WriteBundle, golden: Golden) -> None:
    golden(f"config/{case}", problems_of(write_bundle({"conf/pipelines/p.yml": PIPELINES[case]})))
    assert schema_errors("pipeline", PIPELINES[case])


@pytest.mark.parametrize("case", ENVIRONMENTS)
def test_bad_environment(case: str, write_bundle: WriteBundle, golden: Golden) -> None:
    golden(f"config/{case}", problems_of(write_bundle({"conf/local.yml": ENVIRONMENTS[case]})))
    assert schema_errors("environment", ENVIRONMENTS[case])


def test_misspelled_keys_and_values_hide_no_other_problem(write_bundle: WriteBundle, golden: Golden) -> None:
    pipeline = """\
        steps:
          land:
            layer: bronce
            reads: {rows: {source: tocks, expct: [{not_null: [a]}]}}
            writes: {tabel: landed, mode: upsrt, keys: [a]}
            transfrm: "headrace.transforms.bronze:deduplicate"
          copy:
            layer: silver
            reads: {rows: {table: landed_quarantine}, others: {table: landd, static: true}}
            write: {table: copied}
          again: {layer: gold, reads: {rows: {table: copied}}, writes: {table: more}}
        """
    environment = LOCAL + "sources: {ticks: {kind: fils, format: json, path: data}}\nsettngs: {spark.master: local}\n"
    golden(
        "config/misspellings",
        problems_of(write_bundle({"conf/pipelines/p.yml": dedent(pipeline), "conf/local.yml": environment})),
    )
