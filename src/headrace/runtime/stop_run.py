"""Ask a run on this machine to stop, and wait until it has stopped."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from headrace.checkpoints import stop_request
from headrace.config.models import Bundle
from headrace.errors import DataError, StepError
from headrace.runtime.run_status import status_of

POLL_INTERVAL_S = 0.2


def stop_run(bundle: Bundle, pipeline: str, *, within: float, report: Callable[[str], None]) -> None:
    """Ask the active run to stop between two batches, and wait for its end. Call `report` with lines of progress.

    Raise DataError if no run is active, or if it cannot be asked because its checkpoints are not at a local path.
    Raise StepError if the run has not ended after `within` seconds.
    """
    before = status_of(bundle.run_files_directory, pipeline, steps=[])
    if not before.is_running:
        raise DataError(
            f"pipeline {pipeline!r} is not running in environment {bundle.environment.name!r}: {before.description}",
            where=str(bundle.run_files_directory),
            fix=f"start it: headrace run {pipeline} --env {bundle.environment.name}",
        )
    request = stop_request.request_file(bundle.environment, pipeline)
    if not request:
        raise DataError(
            f"pipeline {pipeline!r} cannot be asked to stop: {before.description}",
            where=bundle.environment.checkpoints,
            fix="send its process SIGTERM: runs read stop requests only if their checkpoints are at a local path",
        )
    stop_request.write_request(Path(request), by=f"process {os.getpid()}", within=within)
    report(f"pipeline {pipeline}: asked to stop between two batches …")
    deadline = time.monotonic() + within
    while (status := status_of(bundle.run_files_directory, pipeline, steps=[])).is_running:
        if time.monotonic() > deadline:
            raise StepError(
                f"pipeline {pipeline!r} has not stopped within {within:g} seconds: {status.description}",
                fix="wait longer with --drain, or kill the process: nothing is lost, the batch will be repeated",
            )
        time.sleep(POLL_INTERVAL_S)
    Path(request).unlink(missing_ok=True)
    report(f"pipeline {pipeline}: {status.description}")
