"""Asking a run to stop."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.checkpoints import stop_request
from headrace.config.load import load_bundle
from headrace.errors import DataError, StepError
from headrace.runtime.events import events_file
from headrace.runtime.recorder import Recorder
from headrace.runtime.stop_run import stop_run


def record_start(bundle):
    """Record a run of this process, which watches for no requests."""
    Recorder(events_file(bundle.run_files_directory, "p"), "p", lambda event: None).record("run started")


def test_run_that_does_not_stop_in_time_is_an_error_and_keeps_the_request(write_bundle):
    bundle = load_bundle(write_bundle({}))
    record_start(bundle)
    reports = []
    with pytest.raises(StepError, match="pipeline 'p' has not stopped within 0 seconds: running since"):
        stop_run(bundle, "p", within=0, report=reports.append)
    assert reports == ["pipeline p: asked to stop between two batches …"]
    assert Path(stop_request.request_file(bundle.environment, "p")).exists()


def test_run_with_checkpoints_in_an_object_store_needs_a_signal(write_bundle):
    local = "engine: {kind: local}\ntables: {root: tables}\ncheckpoints: s3://b/c\nsources: {ticks: {kind: rate}}\n"
    bundle = load_bundle(write_bundle({"conf/local.yml": local}))
    record_start(bundle)
    with pytest.raises(DataError, match="pipeline 'p' cannot be asked to stop: running since") as error:
        stop_run(bundle, "p", within=0, report=print)
    assert "SIGTERM" in error.value.problems[0].fix


def test_pipeline_that_does_not_run_cannot_be_stopped(write_bundle):
    bundle = load_bundle(write_bundle({}))
    with pytest.raises(DataError, match="pipeline 'p' is not running in environment 'local': never run"):
        stop_run(bundle, "p", within=0, report=print)
    assert not Path(stop_request.request_file(bundle.environment, "p")).exists()
