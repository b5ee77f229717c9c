"""Announce a run: record its start and its end, and obey requests to stop it, also while Spark starts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from headrace import interrupts
from headrace.checkpoints.stop_request import Stop, watch_requests
from headrace.config.models import Bundle
from headrace.errors import HeadraceError, one_line
from headrace.runtime.events import Event, events_file
from headrace.runtime.recorder import Recorder
from headrace.runtime.stored_release import release_of


@dataclass(frozen=True)
class AnnouncedRun:
    """A run whose start has been recorded: its recorder, and the event that is set when it should stop."""

    recorder: Recorder
    stop: Stop


@contextmanager
def announce_run(
    bundle: Bundle, pipeline: str, *, watch: Callable[[Event], None] = lambda event: None
) -> Iterator[AnnouncedRun]:
    """Record the start of a run, yield the run, and record its end.

    Requests to stop the run are obeyed in the whole block, so the block should contain the start of Spark.
    `watch` is called with each event.
    """
    recorder = Recorder(events_file(bundle.run_files_directory, pipeline), pipeline, watch, release=release_of(bundle))
    announced = AnnouncedRun(recorder, Stop())
    with watch_requests(bundle.environment, pipeline, announced.stop):
        recorder.record("run started")
        try:
            yield announced
        except KeyboardInterrupt as interrupt:
            recorder.record("run failed", message=str(interrupt) or "interrupted")
            raise
        except Exception as error:
            message = error.problems[0].message if isinstance(error, HeadraceError) else one_line(error)
            recorder.record("run failed", message=message)
            raise
        recorder.record("run stopped" if announced.stop.is_set() else "run ended")


@contextmanager
def stop_on_signals(stop: Stop) -> Iterator[None]:
    """In this block, stop the run between two batches on the first signal, and immediately on the second."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(number: int, frame: Any) -> None:
        if stop.signal is not None:
            interrupts.interrupt(number)
        stop.signal = number
        stop.set()

    handlers = interrupts.handle(on_signal)
    try:
        yield
    finally:
        interrupts.restore(handlers)
