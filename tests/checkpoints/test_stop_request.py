"""Requests to stop: obeyed during a run, and at its start if they have not expired."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from headrace.checkpoints import stop_request
from headrace.config.models import Environment, LocalEngine, Tables


def environment(checkpoints: Path | str) -> Environment:
    return Environment(
        name="local", engine=LocalEngine(kind="local"), tables=Tables(root="t"), checkpoints=str(checkpoints)
    )


@pytest.mark.parametrize(
    "old",
    [
        stop_request.new_request("alice", within=-1),  # expired
        b'{"id": "1", "by": "alice"}\n',  # written by an older version: without expiry
        b'{"until": "soon"}',
        b"truncated",
    ],
    ids=["expired", "without expiry", "invalid expiry", "truncated"],
)
def test_expired_request_is_ignored_and_a_new_one_is_obeyed(tmp_path, monkeypatch, old):
    monkeypatch.setattr(stop_request, "POLL_INTERVAL_S", 0.01)
    (tmp_path / "orders").mkdir()
    file = Path(stop_request.request_file(environment(tmp_path), "orders"))
    file.write_bytes(old)
    stop, polls = stop_request.Stop(), []
    read = stop_request._read
    monkeypatch.setattr(stop_request, "_read", lambda path: polls.append(path) or read(path))
    with stop_request.watch_requests(environment(tmp_path), "orders", stop):
        while len(polls) < 3:  # once before the start, and twice afterwards
            assert not stop.wait(0.01)
        file.unlink()  # deleting the old request is not a request
        while len(polls) < 6:
            assert not stop.wait(0.01)
        stop_request.write_request(file, by="bob", within=-1)  # the requester's clock may be slow
        assert stop.wait(30)
    assert json.loads(file.read_text())["by"] == "bob"
    assert [path.name for path in file.parent.iterdir()] == ["stop.json"]


def test_request_written_during_start_is_obeyed(tmp_path):
    file = Path(stop_request.request_file(environment(tmp_path), "orders"))
    stop_request.write_request(file, by="alice", within=60)
    stop = stop_request.Stop()
    with stop_request.watch_requests(environment(tmp_path), "orders", stop):
        assert stop.is_set()


def test_object_stores_are_not_polled(tmp_path):
    assert stop_request.request_file(environment("s3://bucket/checkpoints"), "orders") == ""
    before = threading.active_count()
    with stop_request.watch_requests(environment("s3://bucket/checkpoints"), "orders", stop_request.Stop()):
        assert threading.active_count() == before
