"""Heartbeats of runs of a release: what they say while a run works, when it fails, and after its end."""

from __future__ import annotations

from pathlib import Path
from threading import Thread

import pytest

from headrace.checkpoints.heartbeat import Heartbeat, heartbeat_file
from headrace.checkpoints.stop_request import write_request
from headrace.config.models import Every
from headrace.errors import HeadraceError
from headrace.runtime import runner
from processes import wait_until
from runs import with_trigger

STEPS = f"""
    land: {{layer: bronze, reads: {{rows: {{source: rows, schema: n INT}}}}, writes: {{table: landed}}}}
    copy:
      layer: silver
      reads: {{rows: {{table: landed}}}}
      transform: {__name__}:checked
      writes: {{table: copied}}
    """


def checked(rows):
    from pyspark.sql import functions as F

    return rows.where(F.when(F.col("n") < 0, F.raise_error(F.lit("negative"))).otherwise(True))


@pytest.fixture
def release(flow):
    """A pipeline of two steps, in a directory that is a release."""
    flow.source("rows")
    flow.steps(STEPS)
    flow.bundle()
    (flow.directory / "manifest.json").write_text("{}")
    return flow


def beat(flow, step):
    return Heartbeat.from_json((flow.directory / "checkpoints" / "flow" / step / "heartbeat.json").read_text())


def test_heartbeat_has_the_batches_of_the_run_and_its_end(release):
    release.feed("rows", {"n": 1}, {"n": 2})
    runner.run(release.spark, release.bundle(), "flow")
    land, copy = beat(release, "land"), beat(release, "copy")
    assert (land.pipeline, land.step, land.release) == ("flow", "land", release.directory.name)
    assert [(each.batch, each.rows, each.failure) for each in (land, copy)] == [(0, 2, ""), (0, 2, "")]
    assert land.started <= land.first_batch_at <= land.last_batch_at <= land.ended <= land.at

    runner.run(release.spark, release.bundle(), "flow")
    again = beat(release, "land")
    assert (again.batch, again.rows, again.first_batch_at) == (-1, 0, ""), "batches are those of the last run"
    assert again.run > land.run
    assert again.ended


def test_heartbeat_of_a_failed_step_has_its_cause(release):
    release.feed("rows", {"n": -1})
    with pytest.raises(HeadraceError):
        runner.run(release.spark, release.bundle(), "flow")
    assert (beat(release, "land").batch, beat(release, "copy").batch) == (0, -1)
    assert "negative" in beat(release, "copy").failure
    assert beat(release, "land").failure.startswith("step 'copy' failed")
    assert beat(release, "copy").ended
    runner.run(release.spark, release.bundle(), "flow", only=["land"])
    assert (beat(release, "land").failure, "negative" in beat(release, "land").last_failure) == ("", True)


def test_run_that_is_refused_has_a_heartbeat_with_the_reason(release):
    release.feed("rows", {"n": 1})
    runner.run(release.spark, release.bundle(), "flow")
    release.steps(STEPS.replace("n INT", "n STRING"))
    with pytest.raises(HeadraceError):
        runner.run(release.spark, release.bundle(), "flow")
    assert "STRING" in beat(release, "land").failure


def test_step_that_finds_nothing_to_read_is_idle_while_it_runs(release):
    bundle = with_trigger(release.bundle(), Every(every="1 second"))
    file = Path(heartbeat_file(bundle.environment, "flow", "land"))
    seen = []

    def stop_when_idle():
        wait_until(lambda: file.exists() and Heartbeat.from_json(file.read_text()).idle_since, "an idle heartbeat")
        seen.append(Heartbeat.from_json(file.read_text()))
        write_request(file.parents[1] / "stop.json", "test", within=60)

    thread = Thread(target=stop_when_idle)
    thread.start()
    runner.run(release.spark, bundle, "flow")
    thread.join()
    (idle,) = seen
    assert (idle.batch, idle.ended, idle.failure) == (-1, "", "")
    assert idle.started <= idle.idle_since <= idle.at


def test_run_that_is_no_release_has_no_heartbeat(release):
    (release.directory / "manifest.json").unlink()
    release.feed("rows", {"n": 1})
    release.run()
    assert not list(release.directory.rglob("heartbeat.json"))


@pytest.mark.parametrize("text", ["", "{}", "[1]", "nonsense"])
def test_damaged_heartbeat_is_an_error(text):
    with pytest.raises(ValueError):
        Heartbeat.from_json(text)


def test_heartbeat_of_a_later_version_can_be_read():
    before = Heartbeat("p", "land", "r", "run", "2026-01-01T12:00:00+00:00", batch=3)
    text = before.to_json().replace('"version": 1', '"version": 2, "colour": "green"')
    assert Heartbeat.from_json(text) == before
