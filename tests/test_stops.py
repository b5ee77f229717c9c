"""Requests to stop: minded when they come while a run goes on, and only then."""

from __future__ import annotations

import threading
from pathlib import Path

from headrace import stops
from headrace.config.models import Environment, LocalEngine, Tables


def environment(checkpoints: Path | str) -> Environment:
    return Environment(
        name="local", engine=LocalEngine(kind="local"), tables=Tables(root="t"), checkpoints=str(checkpoints)
    )


def test_a_request_of_before_is_not_minded_and_a_new_one_is(tmp_path, monkeypatch):
    monkeypatch.setattr(stops, "LOOK", 0.01)
    (tmp_path / "orders").mkdir()
    file = Path(stops.request_file(environment(tmp_path), "orders"))
    stops.ask(file, by="alice")
    stop, looks = threading.Event(), []
    read = stops._read
    monkeypatch.setattr(stops, "_read", lambda path: looks.append(path) or read(path))
    with stops.watched(environment(tmp_path), "orders", stop):
        while len(looks) < 3:  # once before the start, and twice since
            assert not stop.wait(0.01)
        file.unlink()  # whoever takes the old one away asks for nothing
        while len(looks) < 6:
            assert not stop.wait(0.01)
        stops.ask(file, by="bob")
        assert stop.wait(30)
    assert '"by": "bob"' in file.read_text()
    assert [path.name for path in file.parent.iterdir()] == ["stop.json"]


def test_where_no_file_can_be_read_nobody_looks(tmp_path):
    assert stops.request_file(environment("s3://bucket/checkpoints"), "orders") == ""
    before = threading.active_count()
    with stops.watched(environment("s3://bucket/checkpoints"), "orders", threading.Event()):
        assert threading.active_count() == before
