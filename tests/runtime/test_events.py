"""Events: what Spark reports of a batch, as lines that survive a killed process."""

from __future__ import annotations

import json

import pytest

from headrace.io.sinks.batch_writer import BatchCounts
from headrace.runtime import recorder as recorder_module
from headrace.runtime.events import Event, events_file, format_batch, read_events
from headrace.runtime.recorder import RecordedStep, Recorder


@pytest.fixture
def recorder(tmp_path):
    return Recorder(events_file(tmp_path, "p"), "p", lambda event: None)


def test_a_run_is_told_from_its_start_to_its_end(ran):
    _, run = ran
    recorded = list(read_events(run.bundle.directory, "flow"))
    assert tuple(recorded) == run.events
    assert [event.what for event in recorded if event.what != "batch"] == ["run started", "run ended"]
    assert len({event.run for event in recorded}) == 1
    lines = events_file(run.bundle.directory, "flow").read_text().splitlines()
    assert all(json.loads(line).keys() == json.loads(lines[0]).keys() for line in lines)


def test_a_batch_is_told_with_all_its_counts(ran):
    _, run = ran
    land = [event for event in run.events if event.step == "land" and event.rows]
    assert [event.rows for event in land] == [5, 1, 3]
    assert [event.batch for event in land] == [0, 1, 2]
    assert land[0].quarantined == {"malformed": 1}
    assert run.total("land", "duplicates") == 1
    assert run.total("land", "late") == 1  # minute 1, once the watermark stands at 7
    assert all(event.milliseconds > 0 and event.rows_per_second > 0 for event in land)
    count = [event for event in run.events if event.step == "count" and event.what == "batch"]
    assert [event.lag for event in (land[-1], count[-1])] == [{"files": 0}, {"commits": 0}]
    assert count[-1].watermark == "2026-01-01T12:09:00.000Z"
    assert count[-1].state_rows == 2  # minutes 9 and 10 are still open


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


def test_nothing_is_kept_of_a_query_that_has_ended(recorder, tmp_path):
    recorder.add_query("p.s", RecordedStep("s", str(tmp_path), ()))
    kept = vars(recorder)
    sizes = []
    for run in ("first", "second"):
        for batch in (0, 1):
            recorder.record_batch({**REPORT, "runId": run, "batchId": batch})
        recorder.record_end(run)
        assert recorder.wait_for_end(run) == 20
        sizes.append({name: len(value) for name, value in kept.items() if hasattr(value, "__len__")})
    assert sizes[0] == sizes[1]


def fields_of(report, counts=BatchCounts()):
    return recorder_module._batch_fields(report, RecordedStep("s", "", ()), counts)


def test_what_a_second_pass_counted_twice_is_halved():
    twice = BatchCounts(warned={"rule": 1}, passes=2)
    stateless = fields_of(REPORT, twice)
    assert (stateless["rows"], stateless["rows_per_second"]) == (5, 2.5)
    operator = {"numRowsTotal": 6, "numRowsDroppedByWatermark": 2, "customMetrics": {"numDroppedDuplicateRows": 4}}
    stateful = fields_of(REPORT | {"stateOperators": [operator]}, twice)
    assert [stateful[name] for name in ("rows", "state_rows", "late", "duplicates")] == [10, 3, 1, 2]
    assert stateful["lag"] == {}
    assert (stateful["warned"], stateful["batch"], stateful["milliseconds"]) == ({"rule": 1}, 3, 2000)


def test_a_watermark_that_is_still_to_come_is_none():
    told = {"1970-01-01T00:00:00.000Z": None, "2026-01-01T12:09:00.000Z": "2026-01-01T12:09:00.000Z"}
    for reported, watermark in told.items():
        assert fields_of(REPORT | {"eventTime": {"watermark": reported}})["watermark"] == watermark


def test_queries_of_others_are_not_recorded(recorder, tmp_path):
    recorder.record_batch({"name": "another"})
    assert not list(read_events(tmp_path, "p"))


def test_a_line_that_was_cut_off_costs_no_other(recorder, tmp_path):
    recorder.record("run started")
    file = events_file(tmp_path, "p")
    with file.open("a") as lines:
        lines.write('{"what": "batch", "at": "20')  # the process was killed here
    later = Recorder(file, "p", lambda event: None)
    later.record("run started")
    later.record("run ended")
    assert [event.what for event in read_events(tmp_path, "p")] == ["run started", "run started", "run ended"]


def test_lines_of_another_version_are_read_as_far_as_they_are_known(recorder, tmp_path):
    recorder.record("run started")
    file = events_file(tmp_path, "p")
    line = json.loads(file.read_text()) | {"colour": "red"}
    file.write_text(json.dumps(line) + "\n")
    assert [event.what for event in read_events(tmp_path, "p")] == ["run started"]


def test_a_long_file_is_set_aside_once(recorder, tmp_path, monkeypatch):
    monkeypatch.setattr(recorder_module, "ROTATE_AT_BYTES", 3000)
    recorder.add_query("p.s", RecordedStep("s", str(tmp_path), ()))
    for number in range(20):
        recorder.record_batch({**REPORT, "batchId": number})
    assert {file.name for file in (tmp_path / "events").iterdir()} == {"p.jsonl", "p.1.jsonl"}
    kept = [event.batch for event in read_events(tmp_path, "p") if event.what == "batch"]
    assert sorted(set(kept)) == list(range(kept[0], 20))
    assert 10 < kept[0] < 18


def test_whoever_watches_is_told_too(tmp_path):
    seen: list[Event] = []
    Recorder(events_file(tmp_path, "p"), "p", seen.append).record("step failed", "s", "because")
    assert seen == list(read_events(tmp_path, "p"))
    assert (seen[0].what, seen[0].step, seen[0].message, seen[0].pipeline) == ("step failed", "s", "because", "p")


def test_a_batch_in_words():
    event = Event("batch", "now", "p", "r", 1, "s", batch=2, rows=10, milliseconds=40)
    assert format_batch(event) == "s  batch 2  10 rows  0.0 s"
    full = Event(
        "batch",
        "now",
        "p",
        "r",
        1,
        "s",
        batch=2,
        rows=10,
        milliseconds=40,
        lag={"files": 3},
        state_rows=4,
        late=5,
        late_unit="groups",
        duplicates=6,
        quarantined={"a": 1, "b": 2},
    )
    assert format_batch(full) == (
        "s  batch 2  10 rows  0.0 s  lag 3 files  state 4 rows  5 late groups  6 duplicates  3 quarantined"
    )
