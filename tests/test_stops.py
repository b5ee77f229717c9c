"""Requests to stop: honoured when they come during a run, and when one still waits as the run starts."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from headrace import stops
from headrace.config.models import Environment, LocalEngine, Tables


def environment(checkpoints: Path | str) -> Environment:
    return Environment(
        name="local", engine=LocalEngine(kind="local"), tables=Tables(root="t"), checkpoints=str(checkpoints)
    )


@pytest.mark.parametrize(
    "old",
    [
        stops.request("alice", within=-1),  # whoever asked waits no longer
        b'{"id": "1", "by": "alice"}\n',  # of a version that did not say until when
        b'{"until": "soon"}',
        b"cut off",
    ],
)
def test_an_old_request_is_ignored_and_a_new_one_is_honoured(tmp_path, monkeypatch, old):
    monkeypatch.setattr(stops, "POLL_INTERVAL_S", 0.01)
    (tmp_path / "orders").mkdir()
    file = Path(stops.request_file(environment(tmp_path), "orders"))
    file.write_bytes(old)
    stop, polls = stops.Stop(), []
    read = stops._read
    monkeypatch.setattr(stops, "_read", lambda path: polls.append(path) or read(path))
    with stops.watched(environment(tmp_path), "orders", stop):
        while len(polls) < 3:  # once before the start, and twice since
            assert not stop.wait(0.01)
        file.unlink()  # deleting the old one requests nothing
        while len(polls) < 6:
            assert not stop.wait(0.01)
        stops.ask(file, by="bob", within=-1)  # the clock of the requester may be slow
        assert stop.wait(30)
    assert json.loads(file.read_text())["by"] == "bob"
    assert [path.name for path in file.parent.iterdir()] == ["stop.json"]


def test_a_request_made_while_the_run_starts_is_honoured(tmp_path):
    file = Path(stops.request_file(environment(tmp_path), "orders"))
    stops.ask(file, by="alice", within=60)
    stop = stops.Stop()
    with stops.watched(environment(tmp_path), "orders", stop):
        assert stop.is_set()


def test_where_no_file_can_be_read_none_is_polled(tmp_path):
    assert stops.request_file(environment("s3://bucket/checkpoints"), "orders") == ""
    before = threading.active_count()
    with stops.watched(environment("s3://bucket/checkpoints"), "orders", stops.Stop()):
        assert threading.active_count() == before
