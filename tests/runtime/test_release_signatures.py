"""Signatures that are computed without data are those that a run computes at its start."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from headrace.config.load import load_all
from headrace.runtime.release_signatures import compute
from processes import copy_bundle, copy_tree

STEPS = """
    land:
      layer: bronze
      reads:
        rows: {source: rows, schema: "id STRING, n INT, at TIMESTAMP", watermark: {column: at, delay: 2 minutes}}
      transform: headrace.transforms.bronze:deduplicate
      with: {keys: [id]}
      expect: [{between: {n: [0, 9]}}]
      writes: {table: landed}
    names:
      layer: bronze
      reads: {names: {source: names, schema: "id STRING, name STRING NOT NULL"}}
      writes: {table: names}
    bad:
      layer: silver
      reads: {rows: {table: landed_quarantine}}
      writes: {table: bad}
    join:
      layer: silver
      reads: {rows: {table: landed}, names: {table: names, static: true}}
      transform: headrace.transforms.silver:join_static
      with: {keys: [id], how: left}
      writes: {table: joined}
    count:
      layer: gold
      reads: {rows: {table: joined, watermark: {column: at, delay: 1 minute}}}
      transform: headrace.transforms.gold:aggregate_windows
      with: {time: at, window: 1 minute, aggregates: {rows: {count: "*"}}}
      settings: {spark.sql.session.timeZone: Europe/Rome}
      writes: {table: counted}
    """


def add(rows, /, *, column: str):
    return rows.withColumn(column, rows.n + 1)


def signatures(spark, flow, environment="local"):
    """Return the entries of the flow's steps."""
    flow.bundle()
    return compute(spark, load_all(flow.directory))[environment]["flow"]


def recorded(flow, step):
    """Return the signature that the last run has recorded."""
    file = flow.directory / "checkpoints" / "flow" / step / "1" / "signature.json"
    return json.loads(file.read_text())["signature"]


def test_signatures_are_those_of_a_run(spark, ran):
    flow, _ = ran
    computed = {step: entry["signature"] for step, entry in signatures(spark, flow).items()}
    assert {step: recorded(flow, step) for step in ("land", "count")} == computed


@pytest.mark.full
def test_signatures_are_those_of_the_first_run_and_of_later_runs(spark, flow):
    flow.source("rows")
    flow.source("names", format="csv", header=True)
    flow.steps(STEPS)
    computed = {step: entry.get("signature") for step, entry in signatures(spark, flow).items()}
    assert set(computed) == {"land", "names", "bad", "join", "count"}
    assert None not in computed.values()
    for minute in (1, 9):  # the tables do not exist when the first run starts
        flow.feed("names", "id,name", f"{minute},name")
        flow.feed("rows", {"id": minute, "n": minute, "at": f"2026-01-01T12:{minute:02}:00Z"}, {"n": 10})
        flow.run()
        assert {step: recorded(flow, step) for step in computed} == computed


UNKNOWN_SCHEMAS = """
    land: {layer: bronze, reads: {rows: {source: rows, infer: true}}, writes: {table: landed}}
    copy: {layer: silver, reads: {rows: {table: landed}}, writes: {table: copied}}
    fails:
      layer: bronze
      reads: {rows: {source: rows, schema: id STRING}}
      transform: MODULE:add
      with: {column: m}
      row_wise: true
      writes: {table: added}
    """


def test_step_whose_schemas_are_not_declared_has_no_signature(spark, flow):
    flow.source("rows")
    flow.steps(UNKNOWN_SCHEMAS.replace("MODULE", __name__))
    entries = signatures(spark, flow)
    assert entries["land"] == {"not_computed": "the schema of input 'rows' is inferred from its data"}
    assert entries["copy"] == {"not_computed": "the schema of table 'landed' is not known before the table exists"}
    assert entries["fails"]["not_computed"].startswith(f"{__name__}:add failed: ")


def test_each_environment_has_its_own_signatures(spark, flow):
    flow.source("rows")
    flow.steps('land: {layer: bronze, reads: {rows: {source: rows, schema: "id INT"}}, writes: {table: landed}}')
    kafka = (
        "engine: {kind: spark, master: 'spark://example.com:7077'}\ntables: {root: /shop/tables}\n"
        "checkpoints: /shop/checkpoints\n"
        "settings: {spark.sql.session.timeZone: Europe/Rome, spark.executor.memory: 4g}\n"
        "values: {user: {required: true}}\n"
        "sources: {rows: {kind: kafka, servers: 'broker.example.com:9093', topics: [rows], security: "
        "{mechanism: PLAIN, username: {secret: a/user}, password: {secret: 'a/${user}'}}}}\n"
    )
    (flow.directory / "conf" / "prod.yml").write_text(kafka)
    local, prod = (signatures(spark, flow, name)["land"]["signature"] for name in ("local", "prod"))
    assert (local["time_zone"], prod["time_zone"]) == ("UTC", "Europe/Rome")
    assert {**local, "time_zone": ""} == {**prod, "time_zone": ""}


@pytest.mark.full
def test_build_has_the_signatures_of_a_run_of_the_reference_bundle(tmp_path):
    root = copy_tree(tmp_path / "built")
    ran = copy_bundle(tmp_path / "ran", orders=200, customers=20, files=2)
    facts = json.loads(headrace("build", "-o", "json", "-C", str(root)))
    headrace("run", "orders", "-C", str(ran))
    environments = facts["signatures"]["environments"]
    computed = {step: entry["signature"] for step, entry in environments["local"]["orders"].items()}
    records = {file.parts[-3]: file for file in (ran / ".headrace").rglob("signature.json")}
    assert {step: json.loads(file.read_text())["signature"] for step, file in records.items()} == computed
    assert len(computed) == 4
    assert all(environment == environments["local"] for environment in environments.values())


def headrace(*arguments):
    """Run a command in its own process and return its output."""
    command = [sys.executable, "-m", "headrace", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
