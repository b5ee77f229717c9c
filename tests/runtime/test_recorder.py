"""The recorder: batch reports of Spark as events, in lines that survive a killed process."""

from __future__ import annotations

import json
import os

import pytest
from deltalake import DeltaTable
from pyspark.sql import functions as F

from headrace.io.sinks.batch_writer import BatchCounts
from headrace.runtime import batch_report
from headrace.runtime import recorder as recorder_module
from headrace.runtime.batch_report import RecordedStep
from headrace.runtime.events import Event, events_file, read_events
from headrace.runtime.recorder import Recorder

REPORT = {
    "name": "p.s",
    "runId": "r",
    "batchId": 3,
    "timestamp": "now",
    "numInputRows": 10,
    "processedRowsPerSecond": 5.0,
    "batchDuration": 2000,
    "sources": [],
    "stateOperators": [],
}
OPERATOR = {"numRowsTotal": 6, "numRowsDroppedByWatermark": 2}


@pytest.fixture
def recorder(tmp_path):
    return Recorder(events_file(tmp_path, "p"), "p", lambda event: None)


def recorded_step(checkpoint, *watermarked):
    return RecordedStep("s", str(checkpoint), watermarked)


def batch_fields(report, counts=BatchCounts(), *watermarked):  # noqa: B008
    return batch_report.batch_fields(report, recorded_step("", *watermarked), counts)


def batches(run, step):
    return [event for event in run.events if event.step == step and event.what == "batch"]


def test_each_run_has_its_own_id(tmp_path):
    file = events_file(tmp_path, "p")
    for _ in range(3):
        recorder = Recorder(file, "p", lambda event: None)
        recorder.record("run started")
        recorder.record("run ended")
    runs = [event.run for event in read_events(tmp_path, "p") if event.what == "run started"]
    assert len(set(runs)) == 3
    assert runs == sorted(runs)


# ── What is recorded of a batch ───────────────────────────────────────────────────────────────────────


def test_batches_are_recorded_with_all_their_counts(ran):
    _, run = ran
    land = [event for event in batches(run, "land") if event.rows]
    assert [event.rows for event in land] == [5, 1, 3]
    assert [event.batch for event in land] == [0, 1, 2]
    assert land[0].quarantined == {"malformed": 1}
    assert run.total("land", "duplicates") == 1
    assert run.total("land", "quarantined") == sum(sum(event.quarantined.values()) for event in land) == 1
    assert run.total("land", "late") == 1  # minute 1, with the watermark at minute 7
    assert all(event.milliseconds > 0 and event.rows_per_second > 0 for event in land)
    count = batches(run, "count")
    assert [event.lag for event in (land[-1], count[-1])] == [{"files": 0}, {"commits": 0}]
    assert count[-1].watermark == "2026-01-01T12:09:00.000Z"
    assert count[-1].state_rows == 2  # the windows of minutes 9 and 10 are still open


def test_batches_are_recorded_with_their_query_and_the_phases_of_each(ran):
    flow, run = ran
    land = batches(run, "land")
    metadata = json.loads((flow.directory / "checkpoints/flow/land/1/spark/metadata").read_text())
    assert {event.query for event in land} == {metadata["id"]}
    assert len({event.query_run for event in land}) == 1
    assert {event.version for event in land} == {2}
    assert all(event.phases["addBatch"] <= event.milliseconds for event in land)


def test_sources_are_recorded_with_their_offsets_and_lags(ran):
    flow, run = ran
    land, count = batches(run, "land"), batches(run, "count")
    for event, kind, unit in ((land[-1], "FileStreamSource", "files"), (count[-1], "DeltaSource", "commits")):
        (source,) = event.sources
        assert source["name"].startswith(f"{kind}[file:{flow.directory}/")
        assert (source["lag"], source["lag_unit"]) == (0, unit)
    (first,), (second,) = (event.sources for event in land[:2])
    assert (first["rows"], first["start"], first["end"]) == (5, None, {"logOffset": 0})
    assert (second["rows"], second["start"], second["end"]) == (1, {"logOffset": 0}, {"logOffset": 1})


def test_source_without_a_known_lag_has_none():
    source = {"description": "RateStreamV2[rowsPerSecond=1]", "numInputRows": 3, "startOffset": 0, "endOffset": 1}
    fields = batch_fields({**REPORT, "sources": [source]})
    assert fields["sources"] == ({"name": "RateStreamV2[rowsPerSecond=1]", "rows": 3, "start": 0, "end": 1},)
    assert fields["lag"] == {}


def test_counts_of_a_plan_that_ran_twice_are_halved():
    twice = BatchCounts(warned={"rule": 1}, plan_runs=2)
    source = {"description": "RateStreamV2[rowsPerSecond=1]", "numInputRows": 10}
    stateless = batch_fields({**REPORT, "sources": [source]}, twice)
    assert (stateless["rows"], stateless["rows_per_second"], stateless["sources"][0]["rows"]) == (5, 2.5, 5)
    operator = {
        **OPERATOR,
        "numRowsRemoved": 8,
        "memoryUsedBytes": 100,
        "customMetrics": {"numDroppedDuplicateRows": 4},
    }
    stateful = batch_fields({**REPORT, "stateOperators": [operator]}, twice)
    names = ("rows", "state_rows", "late", "duplicates", "state_rows_removed", "state_bytes")
    assert [stateful[name] for name in names] == [10, 3, 1, 2, 4, 100]
    assert (stateful["warned"], stateful["batch"], stateful["milliseconds"]) == ({"rule": 1}, 3, 2000)
    assert stateful["lag"] == {}


@pytest.mark.parametrize(
    ("reported", "recorded"),
    [("1970-01-01T00:00:00.000Z", None), ("2026-01-01T12:09:00.000Z", "2026-01-01T12:09:00.000Z")],
)
def test_watermark_that_does_not_exist_yet_is_none(reported, recorded):
    assert batch_fields({**REPORT, "eventTime": {"watermark": reported}})["watermark"] == recorded


@pytest.mark.parametrize(
    ("operators", "unit"),
    [
        ([], ""),
        ([{"operatorName": "dedupeWithinWatermark"}], "rows"),
        ([{"operatorName": "symmetricHashJoin"}], "rows"),
        ([{"operatorName": "stateStoreSave"}], "groups"),
        ([{"operatorName": "sessionWindowStateStoreSaveExec"}], "groups"),
        (
            [{"operatorName": "stateStoreSave", "numRowsDroppedByWatermark": 0}, {"operatorName": "symmetricHashJoin"}],
            "rows",
        ),
    ],
)
def test_late_unit_is_that_of_the_operators_that_dropped_any(operators, unit):
    report = {**REPORT, "stateOperators": [{**OPERATOR, **operator} for operator in operators]}
    fields = batch_fields(report)
    assert (fields["late_unit"], bool(fields["late"])) == (unit, bool(unit))


# ── Event times, state and tables of real queries ─────────────────────────────────────────────────────


def test_event_times_of_one_watermark_are_sparks_own(ran):
    _, run = ran
    first, second, third = (event for event in batches(run, "land") if event.rows)
    newest = "2026-01-01T12:09:00.000Z"
    assert first.event_time == {"rows": {"newest": newest}}  # for its malformed row, Spark reports 1970 as the oldest
    assert second.event_time == {"rows": dict.fromkeys(("oldest", "newest"), "2026-01-01T12:08:00.000Z")}
    assert third.event_time == {"rows": {"oldest": "2026-01-01T12:01:00.000Z", "newest": "2026-01-01T12:10:00.000Z"}}
    assert all(event.event_time == {} for event in batches(run, "land") if not event.rows)


def joined_in_time(orders, payments):
    payments = payments.withColumnsRenamed({"id": "payment_id", "at": "paid_at"})
    is_paid_later = (payments.paid_at >= orders.at) & (payments.paid_at <= orders.at + F.expr("INTERVAL 5 MINUTES"))
    return orders.join(payments, (orders.id == payments.payment_id) & is_paid_later)


def test_event_times_of_two_watermarks_are_recorded_by_input(flow):
    """Spark itself reports the event times of one watermark only (4.2.0)."""
    flow.source("orders")
    flow.source("payments")
    flow.feed(
        "orders", {"id": "a", "at": "2026-01-01T12:00:00Z"}, {"id": "b", "at": "2026-01-01T12:05:00Z"}, {"id": "c"}
    )
    flow.feed("payments", {"id": "a", "at": "2026-01-01T12:01:00.250Z"})
    land = "{{layer: bronze, reads: {{rows: {{source: {0}, {schema}}}}}, writes: {{table: {0}}}}}"
    schema = 'schema: "id STRING, at TIMESTAMP"'
    read = "{{table: {0}, watermark: {{column: at, delay: 1 minute}}}}"
    flow.steps(f"""
        orders: {land.format("orders", schema=schema)}
        payments: {land.format("payments", schema=schema)}
        join:
          layer: silver
          reads: {{orders: {read.format("orders")}, payments: {read.format("payments")}}}
          transform: {__name__}:joined_in_time
          writes: {{table: joined}}
        """)
    run = flow.run()
    assert [row["id"] for row in flow.read("joined")] == ["a"]
    first, *later = batches(run, "join")
    assert first.event_time == {
        "orders": {"oldest": "2026-01-01T12:00:00.000Z", "newest": "2026-01-01T12:05:00.000Z"},
        "payments": {"oldest": "2026-01-01T12:01:00.250Z", "newest": "2026-01-01T12:01:00.250Z"},
    }
    assert [(source["rows"], source["lag"], source["lag_unit"]) for source in first.sources] == [
        (3, 0, "commits"),
        (1, 0, "commits"),
    ]
    assert first.lag == {"commits": 0}
    assert all(event.event_time == {} for event in later)  # batches without rows


COUNT = """
land: {layer: bronze, reads: {rows: {source: rows, schema: "id STRING, at TIMESTAMP"}}, writes: {table: landed}}
count:
  layer: gold
  reads: {rows: {table: landed, watermark: {column: at, delay: 1 minute}, options: {maxFilesPerTrigger: 1}}}
  transform: headrace.transforms.gold:aggregate_windows
  with: {time: at, window: 1 minute, aggregates: {rows: {count: "*"}}}
  writes: {table: counted}
"""


def minutes(*numbers):
    return [{"id": str(minute), "at": f"2026-01-01T12:{minute:02}:00Z"} for minute in numbers]


def test_late_rows_of_an_aggregation_are_counted_as_groups(flow):
    flow.steps(COUNT)
    flow.source("rows", maxFilesPerTrigger=1)
    flow.feed("rows", *minutes(0, 1))
    flow.feed("rows", *minutes(10))
    flow.feed("rows", *minutes(11))  # late rows are those of before the previous batch's watermark (4.2.0)
    flow.feed("rows", *minutes(0, 0, 0))  # one group, although three rows
    run = flow.run()
    late = [event for event in batches(run, "count") if event.late]
    assert [(event.late, event.late_unit) for event in late] == [(1, "groups")]


def test_late_rows_of_a_deduplication_are_counted_as_rows(ran):
    _, run = ran
    assert [(event.late, event.late_unit) for event in batches(run, "land") if event.late] == [(1, "rows")]


def test_state_is_recorded_with_its_bytes_and_removed_rows(flow):
    flow.steps(COUNT)
    flow.source("rows", maxFilesPerTrigger=1)
    flow.feed("rows", *minutes(0, 1))
    flow.feed("rows", *minutes(10))
    run = flow.run()
    events = batches(run, "count")
    assert sum(event.state_rows_removed for event in events) == 2  # the windows of minutes 0 and 1
    assert events[-1].state_rows == 1
    assert all(event.state_bytes > 0 for event in events)


def test_tables_are_recorded_with_the_commit_of_each_batch(flow):
    flow.source("rows", maxFilesPerTrigger=1)
    flow.steps("""
        land:
          layer: bronze
          reads: {rows: {source: rows, schema: "id STRING, n INT"}}
          writes: [{table: landed}, {table: newest, mode: upsert, keys: [id], sequence: n}]
        """)
    flow.feed("rows", {"id": "a", "n": 1}, {"id": "b", "n": 1}, "no json")
    flow.feed("rows", {"id": "b", "n": 2}, {"id": "c", "n": 1}, {"id": "a", "n": 0})
    first, second = batches(flow.run(), "land")
    assert first.tables.keys() == {"landed", "newest", "landed_quarantine"}
    assert second.tables.keys() == {"landed", "newest"}
    assert [(name, table["version"], table["rows"]) for name, table in first.tables.items()] == [
        ("landed", 0, 2),
        ("newest", 0, 2),
        ("landed_quarantine", 0, 1),
    ]
    assert [(table["version"], table["rows"]) for table in second.tables.values()] == [(1, 3), (1, 2)]
    files = DeltaTable(str(flow.directory / "tables" / "landed")).get_add_actions(flatten=True)
    written = [event.tables["landed"] for event in (first, second)]
    assert sum(table["files"] for table in written) == len(files)
    sizes = [file.stat().st_size for file in (flow.directory / "tables" / "landed").glob("*.parquet")]
    assert sum(table["bytes"] for table in written) == sum(sizes)


def test_repeated_batch_is_recorded_with_the_commit_from_before_the_crash(flow):
    flow.source("rows", maxFilesPerTrigger=1)
    flow.steps("land: {layer: bronze, reads: {rows: {source: rows, schema: n INT}}, writes: {table: landed}}")
    flow.feed("rows", {"n": 1}, {"n": 2})
    (before,) = batches(flow.run(), "land")
    flow.crash_before_commit("land")
    flow.feed("rows", {"n": 3})
    repeated, new = batches(flow.run(), "land")
    assert repeated.tables == before.tables
    assert (new.tables["landed"]["version"], new.tables["landed"]["rows"]) == (2, 1)  # version 1: its properties


# ── The file ──────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_is_kept_of_an_ended_query(recorder, tmp_path):
    recorder.add_query("p.s", recorded_step(tmp_path))
    attributes = vars(recorder)
    sizes = []
    for run in ("first", "second"):
        for batch in (0, 1):
            recorder.record_batch({**REPORT, "runId": run, "batchId": batch})
        recorder.record_end(run)
        assert recorder.wait_for_end(run) == 20
        sizes.append({name: len(value) for name, value in attributes.items() if hasattr(value, "__len__")})
    assert sizes[0] == sizes[1]


def test_queries_of_other_programs_are_not_recorded(recorder, tmp_path):
    recorder.record_batch({"name": "another"})
    assert not list(read_events(tmp_path, "p"))


def test_unfinished_line_of_a_killed_process_costs_no_other_line(recorder, tmp_path):
    recorder.record("run started")
    file = events_file(tmp_path, "p")
    with file.open("a") as lines:
        lines.write('{"what": "batch", "at": "20')  # the process was killed here
    later = Recorder(file, "p", lambda event: None)
    later.record("run started")
    later.record("run ended")
    assert [event.what for event in read_events(tmp_path, "p")] == ["run started", "run started", "run ended"]


def test_long_file_is_rotated_and_one_old_file_is_kept(recorder, tmp_path, monkeypatch):
    monkeypatch.setattr(recorder_module, "ROTATE_AT_BYTES", 3_000)
    recorder.add_query("p.s", recorded_step(tmp_path))
    for number in range(20):
        recorder.record_batch({**REPORT, "batchId": number})
    assert {file.name for file in (tmp_path / "events").iterdir()} == {"p.jsonl", "p.1.jsonl"}
    numbers = [event.batch for event in read_events(tmp_path, "p") if event.what == "batch"]
    assert sorted(set(numbers)) == list(range(numbers[0], 20))
    assert 10 < numbers[0] < 18


def test_watcher_gets_each_event(tmp_path):
    seen: list[Event] = []
    recorder = Recorder(events_file(tmp_path, "p"), "p", seen.append, release="2026-01-01-abc")
    recorder.record("step failed", "s", "because")
    assert seen == list(read_events(tmp_path, "p"))
    assert (seen[0].what, seen[0].step, seen[0].message, seen[0].pipeline) == ("step failed", "s", "because", "p")
    assert (seen[0].release, seen[0].process) == ("2026-01-01-abc", os.getpid())
