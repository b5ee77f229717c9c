"""The deployed jobs by hand: which there are, start, stop, what they say, and taking them all away."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.config.locations import closest_match
from headrace.deploy import planner
from headrace.deploy.deploy_state import TRIGGERS, Deployed, State, runs_by_itself
from headrace.deploy.deploy_target import Place
from headrace.deploy.drain import Limits, drain, remove
from headrace.deploy.remote import Run
from headrace.deploy.state_store import Ledger, Say
from headrace.errors import ConfigurationError, DataError


@dataclass(frozen=True)
class Standing:
    """How a job stands."""

    key: str
    id: int
    release: str
    trigger: str  # what starts it: continuous, schedule, trigger, or nothing
    state: str  # of its trigger
    last: Run | None  # the run that goes on, else the latest


def standings(place: Place, state: State) -> list[Standing]:
    """How the environment's jobs stand."""
    found = []
    for key, deployed in sorted(state.jobs.items()):
        job = place.remote.job(deployed.id)
        runs = place.remote.runs(deployed.id) if job else []
        kind = next((kind for kind in TRIGGERS if job and kind in job.settings), "")
        status = str(job.settings[kind].get("pause_status", "")).lower() if job and kind else ""
        if job is None:
            status = "deleted by hand"
        elif key in state.stopped:
            status = "stopped by us"
        last = next((run for run in runs if run.is_active), runs[0] if runs else None)
        found.append(Standing(key, deployed.id, deployed.release, kind, status, last))
    return found


def start(key: str, place: Place, *, break_lock: bool, say: Say) -> None:
    """Lets a stopped job run again, or starts a run of one that is not started by itself."""
    ledger = Ledger(place)
    with ledger.locked(f"start {key}", break_lock=break_lock, say=say):
        state = ledger.read()
        deployed = _deployed(key, place, state)
        if key in state.stopped:
            state = ledger.write(_send(key, deployed, place, state, held=False))
            deployed = state.jobs[key]
        is_running = bool(place.remote.runs(deployed.id, active=True))
        if runs_by_itself(deployed.sent):
            if not is_running:  # on a cluster nothing else starts it again
                place.remote.reset_job(deployed.id, deployed.sent)
            say(f"job {key}: runs by itself")
            return
        if is_running:
            say(f"job {key}: is running")
            return
        run = place.remote.start(deployed.id, f"{state.lineage}-{state.serial}-{deployed.id}-by-hand")
        ledger.write(state)  # the next start is another one
        say(f"job {key}: run {run} started")


def stop(key: str, place: Place, limits: Limits, *, break_lock: bool, say: Say) -> None:
    """Holds back whatever starts the job, and ends its runs at their batches' end."""
    ledger = Ledger(place)
    with ledger.locked(f"stop {key}", break_lock=break_lock, say=say):
        state = ledger.read()
        deployed = _deployed(key, place, state)
        ledger.write(_send(key, deployed, place, state, held=True))
        drain(deployed.id, key, deployed.requests, place, limits, say)
        say(f"job {key}: stopped; `headrace start {key} --env {place.name}` lets it run again")


def destroy(place: Place, limits: Limits, *, break_lock: bool, say: Say) -> None:
    """Deletes the jobs, the releases and the state; tables and checkpoints stay."""
    ledger = Ledger(place)
    with ledger.locked("destroy", break_lock=break_lock, say=say):
        state = ledger.read()
        there = planner.jobs(place, state)
        for key in sorted(state.jobs.keys() | there.keys()):
            if key in there:  # also one that a deployment made and lost
                remove(there[key].id, key, state.jobs.get(key), place, limits, say)
            state = ledger.write(state.without_job(key))
        place.remote.delete(place.root)


def output(key: str, place: Place, state: State, run: int | None = None) -> tuple[Run, str]:
    """What the job's latest run, or that one, has said."""
    deployed = _deployed(key, place, state)
    runs = place.remote.runs(deployed.id)
    chosen = next((one for one in runs if run in (None, one.id)), None)
    if chosen is None:
        what = f"no run {run}" if run else "no run yet"
        raise DataError(
            f"job {key!r} has {what}",
            where=f"{place.remote.name}: job {deployed.id}",
            fix=f"known: {', '.join(str(one.id) for one in runs)}"
            if runs
            else f"start one: headrace start {key} --env {place.name}",
        )
    return chosen, place.remote.output(chosen)


def _deployed(key: str, place: Place, state: State) -> Deployed:
    if key not in state.jobs:
        raise ConfigurationError(
            f"environment {place.name!r} has no job {key!r}",
            where=place.remote.name,
            fix=closest_match(key, state.jobs, f"deploy it: headrace deploy --env {place.name}"),
        )
    return state.jobs[key]


def _send(key: str, deployed: Deployed, place: Place, state: State, *, held: bool) -> State:
    """The job with its triggers held back, or as the release wants it."""
    new = replace(deployed, held=held)
    place.remote.reset_job(deployed.id, new.sent)
    job = place.remote.job(deployed.id)
    stopped = {*state.stopped, key} if held else {*state.stopped} - {key}
    told = job.settings if job else {}
    return replace(state.with_job(key, replace(new, told=told)), stopped=tuple(sorted(stopped)))
