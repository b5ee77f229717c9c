"""The state as it is written, and the lock of one who is gone."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from headrace.deploy import state_store as ledgers
from headrace.deploy.deploy_state import Deployed, Entry, Intent, State
from headrace.deploy.state_store import Ledger, in_words
from headrace.errors import DataError, DeploymentError

BODY = {"name": "live", "continuous": {"pause_status": "UNPAUSED"}}
DEPLOYED = Deployed(7, "a1", BODY, BODY, held=True, grants=({"user_name": "bob"},), requests=("/x/stop.json",))
STATE = State(
    lineage="l",
    serial=3,
    release="a1",
    jobs={"live": DEPLOYED},
    stopped=("live",),
    intent=Intent("deploy", "b2", "now", "alice", {"new": "new"}, {"live": DEPLOYED}),
    history=(Entry(1, "deploy", "a1", "then", "alice"),),
)


def test_a_state_is_read_as_it_was_written():
    assert State.of(STATE.text()) == STATE
    assert DEPLOYED.sent == {"name": "live", "continuous": {"pause_status": "PAUSED"}}
    assert STATE.without_job("live").stopped == ()


def test_each_writing_has_the_next_serial_and_one_lineage(tiny):
    ledger = Ledger(tiny.place())
    ledger._place.remote.make_directory(ledger._place.root)
    first = ledger.write(ledger.read())
    second = ledger.write(first)
    assert (first.serial, second.serial) == (1, 2)
    assert first.lineage == second.lineage == ledger.read().lineage != ""


@pytest.mark.parametrize("written", ["not JSON", '{"version": 2}', '{"version": 1}'])
def test_a_state_of_another_kind_is_told(tiny, workspace, written):
    place = tiny.place()
    place.remote.make_directory(place.root)
    place.remote.write(f"{place.root}/state.json", written.encode())
    with pytest.raises(DataError, match="the state of environment 'staging' cannot be read"):
        tiny.plan()


def leave_lock(place, process):
    held = {"id": "1", "owner": "carol", "host": "here", "machine": ledgers._machine(), "process": process}
    held |= {"since": "2026-01-01T00:00:00+00:00", "what": "deploy"}
    place.remote.make_directory(place.root)
    place.remote.write(f"{place.root}/lock.json", json.dumps(held).encode())


def test_the_lock_of_a_process_that_is_gone_is_taken_over_aloud(tiny):
    place, said = tiny.place(), []
    gone = subprocess.Popen(["true"])
    gone.wait()
    leave_lock(place, gone.pid)
    with Ledger(place).locked("deploy", break_lock=False, say=said.append):
        assert json.loads(place.remote.read(f"{place.root}/lock.json"))["process"] == os.getpid()
    assert place.remote.read(f"{place.root}/lock.json") is None
    assert "is taken over: that process is gone" in said[0]


def test_the_lock_of_a_process_that_lives_is_minded(tiny):
    place = tiny.place()
    leave_lock(place, os.getppid())
    Ledger(place).clear()
    with (
        pytest.raises(DeploymentError, match="being changed by carol"),
        Ledger(place).locked("deploy", break_lock=False, say=print),
    ):
        raise AssertionError("the lock was taken")


def test_a_lock_that_was_broken_is_not_taken_from_its_new_holder(tiny):
    place = tiny.place()
    with Ledger(place).locked("deploy", break_lock=False, say=print):
        leave_lock(place, os.getppid())
    assert b"carol" in place.remote.read(f"{place.root}/lock.json")


def test_lengths_of_time_are_told_in_their_largest_unit():
    assert [in_words(seconds) for seconds in (0, 1, 61, 7200, 90_000)] == [
        "0 seconds",
        "1 second",
        "1 minute",
        "2 hours",
        "1 day",
    ]
