"""Carries out a plan. After a crash at any point the same command, run again, comes to the same end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from headrace.deploy import planner, upload
from headrace.deploy.deploy_state import Body, Deployed, Entry, Intent, State, paused, runs_by_itself
from headrace.deploy.deploy_target import Place
from headrace.deploy.drain import Limits, drain, remove, running
from headrace.deploy.plan import JobPlan, Plan
from headrace.deploy.state_store import Ledger, Say, timestamp
from headrace.errors import DeploymentError, Problem
from headrace.release.releases import Release

KEPT = 5  # releases


@dataclass(frozen=True)
class Order:
    """What is to be done, and how."""

    what: str  # deploy, promote, rollback
    came_from: str = ""
    break_lock: bool = False
    keep: int = KEPT
    limits: Limits = field(default_factory=Limits)


def apply(plan: Plan, release: Release, place: Place, order: Order, say: Say) -> State:
    """Carries out that very plan, or nothing when anything has moved since it was made."""
    ledger = Ledger(place)
    with ledger.locked(order.what, break_lock=order.break_lock, say=say):
        state = ledger.read()
        require_same(plan, planner.plan(release, place, state))
        return _Work(plan, release, place, order, ledger, say).carry_out(state)


def require_same(plan: Plan, now: Plan) -> None:
    """Refuses a plan that what is there no longer answers to."""
    if plan == now:
        return
    moved = [
        name
        for name in ("environment", "host", "root", "lineage", "serial", "release", "before", "unfinished", "jobs")
        if getattr(plan, name) != getattr(now, name)
    ]
    raise DeploymentError(
        f"the plan for {plan.environment!r} is no longer true: {', '.join(moved) or 'something'} moved since",
        where=f"{now.host}: {now.root}",
        fix="make a new plan (`headrace plan`), look at it, and apply that",
    )


class _Work:
    """One plan being carried out: the steps stand in their order in `carry_out`."""

    def __init__(self, plan: Plan, release: Release, place: Place, order: Order, ledger: Ledger, say: Say) -> None:
        self._plan, self._release, self._place = plan, release, place
        self._order, self._ledger, self._say = order, ledger, say
        self._remote = place.remote
        self._state = State("")

    def carry_out(self, state: State) -> State:
        changed = [job for job in self._plan.jobs if job.action in ("create", "update")]
        self._state = state
        self._intend(changed)
        self._lay_down()
        known = {job.key: self._hold(job) for job in changed}
        for job in self._plan.jobs:
            if job.action == "delete":
                self._delete(job)
        problems = [problem for job in changed if (problem := self._let_go(job, known[job.key]))]
        self._conclude("; ".join(problem.message for problem in problems))
        if problems:
            raise DeploymentError.of(problems)
        try:
            self._prune()
        except (DeploymentError, KeyboardInterrupt) as error:  # all that was asked for is done
            why = error.problems[0].message if isinstance(error, DeploymentError) else "interrupted"
            self._say(f"old releases were not deleted, the next deployment tries again: {why}")
        return self._state

    # ── The steps, in their order ─────────────────────────────────────────────────────────────────────

    def _intend(self, changed: list[JobPlan]) -> None:
        """Says what is going to be done, before it is."""
        earlier = self._state.intent or Intent("", "", "", "")
        creates = {job.key: job.name for job in changed if job.key not in self._state.jobs}
        before = {job.key: self._state.jobs[job.key] for job in changed if job.key in self._state.jobs}
        intent = Intent(
            what=self._order.what,
            release=self._release.id,
            at=timestamp(),
            by=self._place.user,
            creates={**earlier.creates, **creates},
            before={**before, **earlier.before},  # what an attempt that was cut short had found comes first
        )
        self._state = self._ledger.write(replace(self._state, intent=intent))

    def _lay_down(self) -> None:
        """Puts the release where its jobs read it, and lets the ones they run as read it."""
        upload.put(self._release, self._place, self._say)
        readers = {tuple(job.body["run_as"].items()) for job in self._plan.jobs if job.body.get("run_as")}
        for who in sorted(readers):
            self._remote.let_read(self._place.release(self._release.id), dict(who))

    def _hold(self, job: JobPlan) -> set[int]:
        """Makes the job what it is to be, still paused, and ends its runs of before; the runs that it ever had."""
        before = self._state.jobs.get(job.key)
        if job.id is None:
            number = self._remote.create_job(paused(job.body))
            self._say(f"job {job.key}: created")
        else:
            number = job.id
            self._remote.reset_job(number, paused(job.body))
        requests = {*job.requests, *(before.requests if before else ())} if job.restarts else set(job.requests)
        self._record(number, job, requests, held=True, restart=job.restarts)
        self._remote.grant(number, job.grants)
        if job.restarts:
            drain(number, job.key, requests, self._place, self._order.limits, self._say)
        runs = self._remote.runs(number)
        return {run.id for run in runs if not (run.is_active and run.uses(self._release.id))}

    def _delete(self, job: JobPlan) -> None:
        """Ends the job's runs, and deletes it; one that is gone is forgotten."""
        if job.id is not None:
            remove(job.id, job.key, self._state.jobs.get(job.key), self._place, self._order.limits, self._say)
        self._state = self._ledger.write(self._state.without_job(job.key))

    def _let_go(self, job: JobPlan, known: set[int]) -> Problem | None:
        """Gives the job the triggers that it is to have, and sees its new run running; else what went wrong."""
        number = self._state.jobs[job.key].id
        self._remote.reset_job(number, job.sent)
        starts = runs_by_itself(job.sent)
        if job.restarts and not starts and not job.stopped:
            self._remote.start(number, f"{self._state.lineage}-{self._state.serial}-{number}")
            starts = True
        fault = ""
        if starts:
            self._say(f"job {job.key}: waiting for its run …")
            fault = running(number, self._release.id, known, self._place, self._order.limits.start)
        if fault:
            return self._take_back(job, number, fault)
        self._record(number, job, job.requests, held=job.stopped)
        self._say(f"job {job.key}: {'running' if starts else 'updated' if job.id else 'ready'}")
        return None

    def _take_back(self, job: JobPlan, number: int, fault: str) -> Problem:
        """The job as it was before; a new one is left paused."""
        assert self._state.intent is not None
        before = self._state.intent.before.get(job.key)
        self._remote.reset_job(number, paused(before.body if before else job.body))
        drain(number, job.key, (), self._place, self._order.limits, self._say)
        if before is None:
            self._record(number, job, job.requests, held=True)
            ended = "it was made just now, and is left paused"
        else:
            self._remote.reset_job(number, before.sent)
            if job.restarts and not runs_by_itself(before.sent) and not job.stopped:
                self._remote.start(number, f"{self._state.lineage}-{self._state.serial}-{number}-back")
            told = self._told(number)
            self._state = self._ledger.write(self._state.with_job(job.key, replace(before, told=told)))
            ended = f"it is as it was before, with release {before.release}"
        return Problem(
            f"{self._remote.name}: job {number}",
            f"job {job.key!r} does not run with release {self._release.id}: {fault}; {ended}",
            f"see what it says: headrace logs {job.key} --env {self._place.name}",
        )

    def _conclude(self, fault: str) -> None:
        """Writes down what was done."""
        manifest, order = self._release.manifest, self._order
        entry = Entry(
            number=1 + max((one.number for one in self._state.history), default=0),
            what=order.what,
            release=self._release.id,
            at=timestamp(),
            by=self._place.user,
            came_from=order.came_from,
            commit=manifest.commit,
            dirty=manifest.dirty,
            ended=fault or "done",
        )
        release = self._state.release if fault else self._release.id
        self._state = self._ledger.write(replace(self._state.with_entry(entry), release=release))

    def _prune(self) -> None:
        """Old releases go; those that a job or a run uses stay, however old."""
        done = dict.fromkeys(one.release for one in reversed(self._state.history) if one.ended == "done")
        keep = {*list(done)[: self._order.keep], self._state.release}
        keep |= {deployed.release for deployed in self._state.jobs.values()}
        there = set(self._remote.names(f"{self._place.root}/releases"))
        if there - keep:
            runs = [run for one in self._state.jobs.values() for run in self._remote.runs(one.id, active=True)]
            keep |= {release for release in there for run in runs if run.names(release)}
            gone = upload.prune(self._place, there - keep)
            if gone:
                self._say(f"releases deleted, older than the last {self._order.keep}: {', '.join(gone)}")

    # ── What is written down of a job ─────────────────────────────────────────────────────────────────

    def _record(self, number: int, job: JobPlan, requests: Iterable[str], *, held: bool, restart: bool = False) -> None:
        deployed = Deployed(
            id=number,
            release=self._release.id,
            body=job.body,
            held=held,
            told=self._told(number),
            grants=job.grants,
            requests=tuple(sorted(requests)),
            goes_on=job.goes_on,
            restart=restart,
        )
        self._state = self._ledger.write(self._state.with_job(job.key, deployed))

    def _told(self, number: int) -> Body:
        found = self._remote.job(number)
        return found.settings if found else {}
