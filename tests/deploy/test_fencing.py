"""Two commands that change one environment at the same time, and commands that are repeated after a crash."""

from __future__ import annotations

import json

import pytest

from deployments import SHORT_TIMEOUTS
from headrace.deploy import apply as apply_module
from headrace.deploy import deployed_jobs, job_phases
from headrace.deploy.deploy_lock import lock_path
from headrace.deploy.deployed_jobs import destroy
from headrace.deploy.release_history import choose_rollback_release
from headrace.deploy.state_store import StateStore
from headrace.errors import DeploymentError

STOPPED = "has broken the lock of this command|another command has changed environment 'staging' while this one"


class Killed(BaseException):
    """Ends a command as SIGKILL would, except that its lock is released."""


ENDED_PROCESS = 2**22 + 1  # larger than any process id


@pytest.fixture
def meanwhile(monkeypatch):
    """A function that lets something else happen just before a function of a module is called for the first time."""

    def patch(module, name, action):
        original, calls = getattr(module, name), []

        def wrapper(*arguments, **options):
            calls.append(name)
            if len(calls) == 1:
                action()
            return original(*arguments, **options)

        monkeypatch.setattr(module, name, wrapper)

    return patch


def check_deployed(tiny, release):
    """Check that the environment has this release, completely, and that its jobs run it."""
    state, target = tiny.state(), tiny.target()
    assert (state.release, state.intent) == (release.id, None)
    assert tiny.plan(release).is_empty
    (run,) = target.remote.list_runs(state.jobs["live"].id, active=True)
    assert run.uses(release.id)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (apply_module.upload, "upload_release"),
        (job_phases, "send_paused_and_drain"),
        (job_phases, "resume"),
        (apply_module, "_write_history"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_deployment_whose_lock_is_broken_changes_nothing_more(tiny, meanwhile, module, name):
    tiny.deploy()
    first = tiny.change()
    second = tiny.change()

    def deploy_second():
        tiny.deploy(second, break_lock=True)

    meanwhile(module, name, deploy_second)
    with pytest.raises(DeploymentError, match=STOPPED):
        tiny.deploy(first, keep=1)
    check_deployed(tiny, second)


def test_complete_deployment_whose_lock_is_broken_deletes_no_releases(tiny, meanwhile):
    tiny.deploy()
    first = tiny.change()
    second = tiny.change()
    meanwhile(apply_module, "_delete_old_releases", lambda: tiny.deploy(second, break_lock=True))
    tiny.deploy(first, keep=1)
    assert any(line.startswith("old releases were not deleted") for line in tiny.reported)
    check_deployed(tiny, second)


def test_destroy_does_not_delete_what_another_command_deploys(tiny, meanwhile, workspace):
    tiny.deploy()
    changed = tiny.change()
    meanwhile(deployed_jobs, "delete_job", lambda: tiny.deploy(changed, break_lock=True))
    with pytest.raises(DeploymentError, match=STOPPED):
        destroy(tiny.target(), SHORT_TIMEOUTS, break_lock=False, report=tiny.reported.append)
    root = workspace.directory / "Workspace/Shared/tiny/staging.headrace"
    assert (root / "releases" / changed.id / "manifest.json").exists()
    tiny.deploy(changed)
    check_deployed(tiny, changed)


def test_command_that_was_killed_before_its_first_change_does_not_count(tiny):
    """The lock that it has left is not that of the deployment before, which has ended."""
    releases = [tiny.release(), tiny.change()]
    for release in releases:
        tiny.deploy(release)
    target = tiny.target()
    with StateStore(target).locked("rollback", break_lock=False, report=print):
        lock = json.loads(target.remote.read_file(lock_path(target)))
    target.remote.write_file(lock_path(target), json.dumps({**lock, "process": ENDED_PROCESS}).encode())
    assert tiny.state().intent is None
    assert choose_rollback_release(tiny.state(), target) == releases[0].id
    with StateStore(target).locked("rollback", break_lock=False, report=print):
        assert tiny.state().intent is None


@pytest.mark.parametrize("moment", ["_delete_old_releases", "_write_history"])
def test_repeated_rollback_goes_back_only_once(tiny, meanwhile, monkeypatch, moment):
    releases = [tiny.release()]
    tiny.deploy()
    for _ in range(2):
        releases.append(tiny.change())
        tiny.deploy()

    target = tiny.target()

    def kill():
        lock = json.loads(target.remote.read_file(lock_path(target)))
        locks.append(json.dumps({**lock, "process": ENDED_PROCESS}).encode())
        raise Killed

    locks = []

    def roll_back():
        chosen = choose_rollback_release(tiny.state(), target)
        release = next(release for release in releases if release.id == chosen)
        return tiny.deploy(release, command="rollback")

    with monkeypatch.context():
        meanwhile(apply_module, moment, kill)
        with pytest.raises(Killed):
            roll_back()
    target.remote.write_file(lock_path(target), locks[0])  # a killed process does not release its lock
    assert tiny.state().intent is not None
    roll_back()
    check_deployed(tiny, releases[1])
    assert [entry.command for entry in tiny.state().history] == ["deploy"] * 3 + ["rollback"]
