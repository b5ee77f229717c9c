"""Event records: what is read back, from any version of Headrace, and a batch as one line of text."""

from __future__ import annotations

import json

from headrace.runtime.events import LOG_ROTATED, Event, events_file, format_batch, format_lag, read_events


def write_records(directory, *records):
    file = events_file(directory, "p")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(record) + "\n" for record in records))


def test_events_of_a_run_are_read_back(ran):
    _, run = ran
    events = list(read_events(run.bundle.run_files_directory, "flow"))
    assert tuple(events) == run.events
    assert [event.what for event in events if event.what != "batch"] == ["run started", "run ended"]
    assert len({event.run for event in events}) == 1
    lines = events_file(run.bundle.run_files_directory, "flow").read_text().splitlines()
    assert all(json.loads(line).keys() == json.loads(lines[0]).keys() for line in lines)


def test_records_of_version_1_are_read_with_the_names_of_today(tmp_path):
    """Records of one pipeline may be of several versions: the one before an upgrade is kept."""
    old = {"at": "now", "pipeline": "p", "run": "r", "process": 1}
    batch = {**old, "what": "batch", "step": "s", "batch": 2, "rows": 7, "behind": 3, "refused": {"malformed": 1}}
    write_records(tmp_path, {**old, "what": "events set aside"}, batch, {**batch, "behind": None, "refused": {}})
    rotated, behind, unknown = read_events(tmp_path, "p")
    assert rotated.what == LOG_ROTATED
    assert (behind.version, behind.step, behind.batch, behind.rows) == (1, "s", 2, 7)
    assert (behind.lag, behind.quarantined) == ({"": 3}, {"malformed": 1})
    assert (unknown.lag, unknown.quarantined) == ({}, {})
    assert [format_lag(event.lag) for event in (behind, unknown)] == ["3", ""]
    assert (behind.sources, behind.event_time, behind.tables, behind.late_unit) == ((), {}, {}, "")


def test_unknown_fields_of_a_later_version_are_ignored(tmp_path):
    event = {"what": "run started", "at": "now", "pipeline": "p", "run": "r", "process": 1, "version": 3}
    write_records(tmp_path, {**event, "colour": "red"})
    assert list(read_events(tmp_path, "p")) == [Event(**event)]


def test_batch_as_one_line():
    event = Event("batch", "now", "p", "r", 1, "s", batch=2, rows=10, milliseconds=40)
    assert format_batch(event) == "s  batch 2  10 rows  40 ms"
    full = Event(
        "batch",
        "now",
        "p",
        "r",
        1,
        "s",
        batch=2,
        rows=12_345,
        milliseconds=5_040,
        lag={"files": 3, "commits": 1},
        state_rows=4_905,
        late=5,
        late_unit="groups",
        duplicates=6,
        quarantined={"a": 1, "b": 2},
        dropped={"c": 4},
        warned={"d": 8},
    )
    assert format_batch(full) == (
        "s  batch 2  12,345 rows  5.0 s  lag 3 files, 1 commit  state 4,905 rows  "
        "5 late groups  6 duplicates  3 quarantined  4 dropped  8 warned"
    )
