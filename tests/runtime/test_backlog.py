"""How much a run has to read, which decides how the JVM compiles."""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict

import pytest

from headrace.config.models import KafkaSource
from headrace.graph import order
from headrace.runtime import backlog, runner
from headrace.runtime.events import Event, events_file

STEPS = """
land: {layer: bronze, reads: {rows: {source: rows, schema: "id INT"}}, writes: {table: landed}}
copy: {layer: silver, reads: {rows: {table: landed}}, writes: {table: copy}}
"""


@pytest.fixture(autouse=True)
def low_limits(monkeypatch):
    """Limits that the few rows of a test exceed."""
    monkeypatch.setattr(backlog, "LARGE_BYTES", 1_000)
    monkeypatch.setattr(backlog, "LARGE_RECORDS", 100)


def is_large(flow, *only):
    bundle = flow.bundle()
    return backlog.is_large(bundle, "flow", order.select_steps(bundle, "flow", only))


def is_short(flow, **options):
    return runner.is_short(flow.bundle(), "flow", **{"follow": False, "once": False, **options})


def test_files_that_were_read_do_not_count(flow):
    flow.steps(STEPS)
    flow.source("rows")
    flow.feed("rows", *({"id": n} for n in range(50)))
    assert (is_large(flow), is_short(flow)) == (False, True)
    flow.feed("rows", *({"id": n} for n in range(100)))
    assert (is_large(flow), is_short(flow), is_short(flow, follow=True)) == (True, False, False)
    assert not is_large(flow, "copy")  # its table does not exist yet
    flow.run("land")
    assert not is_large(flow, "land")
    flow.feed("rows", *({"id": n} for n in range(200)))
    assert is_large(flow, "land")
    (flow.directory / "data" / "rows" / "nowhere").symlink_to("nowhere")
    assert is_large(flow, "land")


def test_table_that_another_run_wrote_counts_until_it_is_read(flow, monkeypatch):
    flow.steps(STEPS)
    flow.source("rows")
    flow.feed("rows", *({"id": n} for n in range(100)))
    flow.run("land")
    monkeypatch.setattr(backlog, "LARGE_BYTES", 100)
    assert is_large(flow, "copy")
    flow.run("copy")
    assert not is_large(flow, "copy")


def test_patterns_are_expanded_and_object_stores_count_as_large(flow):
    flow.steps(STEPS)
    directory = flow.source("rows")
    (directory / "day").mkdir()
    (directory / "day" / "a.json.gz").write_bytes(gzip.compress(bytes(range(256)) * 8, compresslevel=0))
    flow.other_source("rows", kind="files", format="json", path=f"{directory}/*")
    assert is_large(flow)
    flow.other_source("rows", kind="files", format="json", path=f"{directory}/other*")
    assert not is_large(flow)
    flow.other_source("rows", kind="files", format="json", path="s3://bucket/rows")
    assert is_large(flow)  # it cannot be measured


def test_records_of_kafka_are_expected_to_be_as_many_as_in_the_last_run(flow):
    flow.steps(STEPS)
    flow.other_source("rows", kind="kafka", servers="broker:9092", topics=["rows"])
    bundle = flow.bundle()
    assert isinstance(bundle.environment.sources["rows"], KafkaSource)
    assert is_large(flow)  # no run is recorded

    def record_batch(run, **fields):
        event = Event("batch", "now", "flow", run, 1, "land", batch=0, **fields)
        file = events_file(bundle.run_files_directory, "flow")
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as lines:
            lines.write(json.dumps(asdict(event)) + "\n")

    record_batch("1", rows=1_000)
    assert is_large(flow)
    record_batch("2", rows=60)
    assert not is_large(flow)
    record_batch("2", rows=30, lag={"records": 5})
    assert not is_large(flow)
    record_batch("3", rows=30, lag={"records": 500})
    assert is_large(flow)
