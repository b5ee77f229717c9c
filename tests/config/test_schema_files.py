"""The JSON Schemas accept every file that Headrace accepts. Tests of invalid files also pass them to the schemas."""

from __future__ import annotations

from pathlib import Path

import pytest

from editor_schemas import schema_errors
from headrace.release.scaffold import TEMPLATES

ROOT = Path(__file__).parents[2]
DIRECTORIES = (ROOT, TEMPLATES)
FILES = [
    pytest.param(kind, file, id=str(file.relative_to(ROOT)))
    for kind, directory in (("environment", "conf"), ("pipeline", "conf/pipelines"))
    for root in DIRECTORIES
    for file in sorted((root / directory).glob("*.yml*"))
]


@pytest.mark.parametrize(("kind", "file"), FILES)
def test_file_of_the_repository_is_valid(kind: str, file: Path) -> None:
    text = file.read_text(encoding="utf-8").replace("@NAME@", "weather")
    assert schema_errors(kind, text) == []


def test_both_places_have_pipelines_and_environments() -> None:
    assert {(parameter.values[0], TEMPLATES in parameter.values[1].parents) for parameter in FILES} == {
        (kind, is_template) for kind in ("environment", "pipeline") for is_template in (False, True)
    }


VALID = {
    "environment": """\
engine: {kind: spark, master: "spark://${host}:7077", releases: /srv}
tables: {root: /srv/tables}
checkpoints: "${checkpoints}"
trigger: "${trigger}"
triggers: {gold: {every: "${interval}"}, silver: once}
stop_grace: 1 hour
sources:
  orders: {kind: kafka, servers: "a:1", pattern: "a.*", start: "${start}", security: {mechanism: PLAIN, username: me,
           password: {secret: a/b}, tls: false}}
  ticks: {kind: rate, rows_per_second: "${rate}", options: {numPartitions: 2}}
topics: {alerts: {servers: "a:1", topic: shop.alerts}}
folders: {out: data/out}
values: {host: x, rate: 5, user: {required: true}}
settings: {spark.sql.shuffle.partitions: 4, spark.a: true, spark.b: 1.5}
""",
    "pipeline": """\
steps:
  land:
    layer: bronze
    reads: {rows: {source: ticks, static: false, schema: "a INT", watermark: {column: at, delay: " 5  minutes "}}}
    transform: null
    writes:
      - {table: a, mode: upsert, keys: [a], sequence: b, evolve: add}
      - {topic: alerts, options: {a: b}}
  silver:
    layer: silver
    reads: {rows: {table: a, changes: true, options: {startingVersion: 1}}, more: {table: b, static: true}}
    transform: a.b:c
    with: {keys: [a], any: {thing: 1}}
    expect: [{between: {a: [1, 2.5]}, on_fail: drop}, {one_of: {b: [x, 1]}}, {unique: [a]}]
    output: update
    accept: ["0c1f8a52d7e3"]
    writes: {folder: out, format: parquet, partition_by: [a]}
""",
}


@pytest.mark.parametrize("kind", VALID)
def test_every_form_of_a_value_is_valid(kind: str) -> None:
    assert schema_errors(kind, VALID[kind]) == []
