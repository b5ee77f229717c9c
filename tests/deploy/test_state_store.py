"""The files of the state, which command may write them, what becomes of lost and damaged ones, and locks."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from headrace.deploy import deploy_lock
from headrace.deploy.deploy_lock import Lock, format_duration, remove_abandoned_lock
from headrace.deploy.deploy_state import DeployedJob, HistoryEntry, Intent, State
from headrace.deploy.plan import Change, JobPlan, Plan
from headrace.deploy.state_store import StateStore
from headrace.deploy.stored_json import to_document
from headrace.errors import DataError, DeploymentError

BODY = {"name": "live", "continuous": {"pause_status": "UNPAUSED"}}
DEPLOYED = DeployedJob(
    7, "a1", BODY, BODY, is_paused=True, grants=({"user_name": "bob"},), request_files=("/x/stop.json",)
)
STATE = State(
    lineage="l",
    serial=3,
    release="a1",
    jobs={"live": DEPLOYED},
    stopped=("live",),
    intent=Intent("deploy", "b2", "now", "alice", {"new": "new"}, {"live": DEPLOYED}),
    history=(HistoryEntry(1, "deploy", "a1", "then", "alice"),),
)


def test_state_is_read_as_it_was_written():
    assert State.from_json(STATE.to_json()) == STATE
    assert DEPLOYED.sent_body == {"name": "live", "continuous": {"pause_status": "PAUSED"}}
    assert STATE.without_job("live").stopped == ()


def test_files_keep_the_keys_of_earlier_versions(golden):
    change = Change("path", "old", "new")
    job = JobPlan("live", "update", "live", 7, BODY, changes=(change,), drift=(change,))
    plan = Plan("staging", "host", "root", "l", 3, "b2", "a1", wheels=(change,), jobs=(job,))
    lock = json.dumps(to_document(Lock("1", "alice", "host", "machine", 7, "now", "deploy")), indent=1)
    golden("deploy/files", f"{STATE.to_json()}\n{plan.to_json()}\n{lock}")


def test_each_write_increments_the_serial_and_keeps_the_lineage(tiny):
    store = StateStore(tiny.target())
    store._target.remote.make_directory(store._target.root)
    first = store.write(store.read())
    second = store.write(first)
    assert (first.serial, second.serial) == (1, 2)
    assert first.lineage == second.lineage == store.read().lineage != ""


def test_state_of_the_first_format_is_read_and_then_replaced_by_a_marker(tiny):
    target = tiny.target()
    target.remote.make_directory(target.root)
    target.remote.write_file(f"{target.root}/state.json", STATE.to_json().encode())
    store = StateStore(target)
    assert store.read() == STATE
    assert store.write(STATE).serial == 4
    assert StateStore(target).read().serial == 4
    with pytest.raises(ValueError, match="version 2"):
        State.from_json(target.remote.read_file(f"{target.root}/state.json").decode())


def test_state_in_the_directory_of_earlier_versions_is_continued(tiny):
    target = tiny.target()
    assert (target.root, target.first_root) == (f"{target.first_root}.headrace", "/Workspace/Shared/tiny/staging")
    state = tiny.deploy()
    first_root = target.first_root
    target.remote.make_directory(first_root)
    target.remote.write_file(f"{first_root}/state.json", state.to_json().encode())
    target.remote.delete(target.root)
    assert tiny.state().jobs == state.jobs
    changed = tiny.deploy(tiny.change())
    assert {key: job.id for key, job in changed.jobs.items()} == {key: job.id for key, job in state.jobs.items()}
    assert b'"version": 2' in target.remote.read_file(f"{first_root}/state.json")
    target.remote.delete(first_root)  # as the official tool would do it
    assert tiny.state() == changed


@pytest.mark.parametrize("content", ["not JSON", '{"version": 2}', '{"version": 1}', "[]", ""])
def test_unreadable_state_is_an_error(tiny, content):
    target = tiny.target()
    target.remote.make_directory(target.root)
    target.remote.write_file(f"{target.root}/state-2.json", content.encode())
    with pytest.raises(DataError, match=r"(?s)state of environment 'staging' cannot be read.*state is rebuilt from"):
        tiny.plan()
    target.remote.write_file(f"{target.root}/state-1.json", STATE.to_json().encode())
    with pytest.raises(DataError, match=r"delete it: .*/staging\.headrace/state-1\.json is used instead"):
        tiny.plan()
    target.remote.delete(f"{target.root}/state-2.json")
    assert tiny.state() == STATE


def test_only_the_last_files_of_the_state_are_kept(tiny, monkeypatch):
    monkeypatch.setattr("headrace.deploy.state_store.KEPT", 3)
    target = tiny.target()
    tiny.deploy()
    serial = tiny.state().serial
    names = target.remote.list_directory(target.root)
    assert sorted(name for name in names if name.startswith("state-")) == [
        f"state-{number}.json" for number in range(serial - 2, serial + 1)
    ]


def test_command_whose_lock_was_broken_notices_it(tiny):
    target = tiny.target()
    first, second = StateStore(target), StateStore(target)
    with pytest.raises(DeploymentError, match=r"alice@example.com on .* \(deploy again\) has broken the lock"):  # noqa: SIM117
        with first.locked("deploy", break_lock=False, report=print):
            first.require_lock()
            with second.locked("deploy again", break_lock=True, report=print):
                first.require_lock()


def test_command_that_reads_an_old_state_cannot_write_over_a_newer_one(tiny):
    """As if its lock were broken between its check of the lock and its write."""
    target = tiny.target()
    target.remote.make_directory(target.root)
    store = StateStore(target)
    state = store.read()
    newer = store.write(state)
    with pytest.raises(DeploymentError, match="another command has changed environment 'staging'"):
        StateStore(target).write(state)
    assert tiny.state() == newer


def write_lock(target, process):
    lock = {"id": "1", "owner": "carol", "host": "here", "machine": deploy_lock._machine_id(), "process": process}
    lock |= {"since": "2026-01-01T00:00:00+00:00", "what": "deploy"}
    target.remote.make_directory(target.root)
    target.remote.write_file(f"{target.root}/lock.json", json.dumps(lock).encode())


def test_lock_of_an_ended_process_is_taken_over_with_a_message(tiny):
    target, reported = tiny.target(), []
    ended = subprocess.Popen(["true"])
    ended.wait()
    write_lock(target, ended.pid)
    with StateStore(target).locked("deploy", break_lock=False, report=reported.append):
        assert json.loads(target.remote.read_file(f"{target.root}/lock.json"))["process"] == os.getpid()
    assert target.remote.read_file(f"{target.root}/lock.json") is None
    assert "is taken over: its process has ended" in reported[0]


def test_lock_of_a_live_process_is_respected(tiny):
    target = tiny.target()
    write_lock(target, os.getppid())
    remove_abandoned_lock(target)
    with (
        pytest.raises(DeploymentError, match="being changed by carol"),
        StateStore(target).locked("deploy", break_lock=False, report=print),
    ):
        raise AssertionError("the lock was taken")


def test_holder_of_a_broken_lock_does_not_release_the_new_lock(tiny):
    target = tiny.target()
    with StateStore(target).locked("deploy", break_lock=False, report=print):
        write_lock(target, os.getppid())
    assert b"carol" in target.remote.read_file(f"{target.root}/lock.json")


@pytest.mark.parametrize("content", [b"", b"not JSON", b"[]", b"{}"])
def test_unreadable_lock_can_be_broken(tiny, content):
    target, reported = tiny.target(), []
    target.remote.make_directory(target.root)
    target.remote.write_file(f"{target.root}/lock.json", content)
    remove_abandoned_lock(target)
    with (
        pytest.raises(DeploymentError, match=r"(?s)the lock of environment 'staging' cannot be read.*--break-lock"),
        StateStore(target).locked("deploy", break_lock=False, report=print),
    ):
        raise AssertionError("the lock was taken")
    with StateStore(target).locked("deploy", break_lock=True, report=reported.append):
        assert reported == ["the lock, which cannot be read, is broken"]


def test_durations_are_formatted_in_their_largest_unit():
    assert [format_duration(seconds) for seconds in (0, 1, 61, 7200, 90_000)] == [
        "0 seconds",
        "1 second",
        "1 minute",
        "2 hours",
        "1 day",
    ]
