"""Write the heartbeats of a run's steps."""

from __future__ import annotations

import itertools
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from headrace.checkpoints.heartbeat import INTERVAL_S, Heartbeat, heartbeat_file, now
from headrace.config.models import Environment
from headrace.errors import HeadraceError, one_line
from headrace.runtime.events import Event
from headrace.runtime.recorder import Recorder

WRITE_INTERVAL_S = 1.0  # the shortest time between two writes of a step's heartbeat, except the last one


class Heartbeats:
    """The heartbeats of the steps of one run, which holds the locks of these steps."""

    def __init__(self, files: Mapping[str, Path], pipeline: str, release: str, run: str) -> None:
        self._files = files  # by step, as are the other dictionaries
        self._current = {
            step: Heartbeat(pipeline, step, release, run, now(), last_failure=_last_failure(file, release))
            for step, file in files.items()
        }
        self._changed = set(files)
        self._guard = threading.Lock()

    def on_event(self, event: Event) -> None:
        """Take over a batch or a failure of a step from the events of the run."""
        if event.what == "batch":
            current = self._current[event.step]
            self._update(
                event.step,
                batch=event.batch,
                rows=current.rows + event.rows,
                first_batch_at=current.first_batch_at or event.at,
                last_batch_at=event.at,
                idle_since="" if event.rows else current.idle_since or event.at,
                failure="",
            )
        elif event.what == "step failed":
            self._update(event.step, failure=event.message, ended=event.at)

    def on_idle(self, step: str) -> None:
        """Note that the step has found nothing to read."""
        if not self._current[step].idle_since:
            self._update(step, idle_since=now())

    def on_end(self, failure: str) -> None:
        """Note the end of the run. `failure` is empty if the run did not fail."""
        for step, current in self._current.items():
            self._update(step, ended=current.ended or now(), failure=current.failure or failure)

    def write(self, *, everything: bool = False) -> None:
        """Write the heartbeats that have changed, or all. A heartbeat that cannot be written is tried again later."""
        with self._guard:
            steps = set(self._files) if everything else self._changed
            self._changed = set()
        for step in steps:
            file, temporary = self._files[step], self._files[step].with_name(f".heartbeat-{uuid.uuid4().hex}")
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                temporary.write_text(replace(self._current[step], at=now()).to_json())
                temporary.replace(file)
            except OSError:  # a heartbeat must not stop the run
                with suppress(OSError):
                    temporary.unlink()
                with self._guard:
                    self._changed.add(step)

    def _update(self, step: str, **values: Any) -> None:
        with self._guard:
            self._current[step] = replace(self._current[step], **values)
            self._changed.add(step)


def _last_failure(file: Path, release: str) -> str:
    """Return why an earlier run of the release failed, from the heartbeat that it has left; empty if it did not."""
    try:
        earlier = Heartbeat.from_json(file.read_bytes())
    except (OSError, ValueError):
        return ""
    return (earlier.failure or earlier.last_failure) if earlier.release == release else ""


@contextmanager
def write_heartbeats(
    environment: Environment, pipeline: str, steps: Sequence[str], recorder: Recorder
) -> Iterator[None]:
    """Write the heartbeats of the steps during this block, and at its end that the run has ended or failed.

    Do nothing if the run is not that of a release, or if checkpoints are in an object store.
    """
    paths = {step: heartbeat_file(environment, pipeline, step) for step in steps}
    if not recorder.release or not all(paths.values()):
        yield
        return
    files = {step: Path(path) for step, path in paths.items()}
    heartbeats = Heartbeats(files, pipeline, recorder.release, recorder.run)
    ended = threading.Event()

    def write_regularly() -> None:
        for count in itertools.count(1):
            if ended.wait(WRITE_INTERVAL_S):
                return
            heartbeats.write(everything=count % round(INTERVAL_S / WRITE_INTERVAL_S) == 0)

    heartbeats.write()
    recorder.add_watcher(heartbeats.on_event, heartbeats.on_idle)
    thread = threading.Thread(target=write_regularly, name="heartbeats", daemon=True)
    thread.start()
    failure = ""
    try:
        yield
    except BaseException as error:
        failure = error.problems[0].message if isinstance(error, HeadraceError) else one_line(error)
        raise
    finally:
        ended.set()
        thread.join()
        heartbeats.on_end(failure)
        heartbeats.write()
