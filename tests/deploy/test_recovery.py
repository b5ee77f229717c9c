"""A lost state is rebuilt from the tags of the jobs and from the releases."""

from __future__ import annotations

import pytest

from deployments import SHORT_TIMEOUTS
from headrace.deploy.deployed_jobs import stop_job
from headrace.deploy.release_history import choose_rollback_release
from headrace.errors import DeploymentError


@pytest.fixture
def lost(tiny, workspace):
    """Three deployed releases in an environment, and a function that deletes the files of its state."""
    releases = [tiny.release().id]
    tiny.deploy()
    for _ in range(2):
        releases.append(tiny.change().id)
        tiny.deploy()

    def lose():
        for file in (workspace.directory / "Workspace/Shared/tiny/staging.headrace").glob("state*.json"):
            file.unlink()
        return releases

    return lose


def test_lost_state_is_rebuilt(tiny, lost):
    before = tiny.state()
    releases = lost()
    rebuilt = tiny.state()
    assert (rebuilt.release, rebuilt.jobs, rebuilt.stopped) == (before.release, before.jobs, ())
    assert {entry.release for entry in rebuilt.history} == set(releases)
    assert rebuilt.history[-1].release == releases[-1]
    assert {entry.command for entry in rebuilt.history} == {"recovered"}


def test_deployment_after_the_loss_deletes_no_release_and_creates_no_second_job(tiny, lost, client):
    releases = lost()
    plan = tiny.plan()
    assert ({job.action for job in plan.jobs}, plan.is_empty) == ({"unchanged"}, True)
    changed = tiny.change()
    tiny.deploy(changed, keep=1)
    target = tiny.target()
    assert set(target.remote.list_directory(f"{target.root}/releases")) == {*releases, changed.id}
    assert len(list(client.jobs.list())) == 2
    assert choose_rollback_release(tiny.state(), target, releases[0]) == releases[0]
    assert choose_rollback_release(tiny.state(), target) == releases[-1]


def test_stopped_job_stays_stopped_after_the_loss(tiny, lost):
    stop_job("live", tiny.target(), SHORT_TIMEOUTS, break_lock=False, report=tiny.reported.append)
    lost()
    assert tiny.state().stopped == ("live",)
    tiny.deploy(tiny.change())
    assert tiny.target().remote.list_runs(tiny.state().jobs["live"].id, active=True) == []


def test_job_without_its_release_is_recovered_as_it_is(tiny, lost):
    before = tiny.state()
    lost()
    target = tiny.target()
    target.remote.delete(target.release_path(before.release))
    rebuilt = tiny.state()
    assert rebuilt.release == ""
    assert {key: job.id for key, job in rebuilt.jobs.items()} == {key: job.id for key, job in before.jobs.items()}
    assert rebuilt.jobs["live"].request_files == ()


def test_environment_without_anything_is_empty(tiny):
    assert tiny.state().jobs == {}
    with pytest.raises(DeploymentError, match="no release before the current one"):
        choose_rollback_release(tiny.state(), tiny.target())
