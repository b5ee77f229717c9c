"""What a deployment would change: a frozen value; the one shown is the one approved is the one carried out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from headrace.deploy.deploy_state import Body, Deployed, Grants, State, paused
from headrace.deploy.desired_job import Wanted
from headrace.deploy.remote import Found
from headrace.errors import DeploymentError
from headrace.release.releases import Manifest

Action = Literal["create", "update", "unchanged", "delete"]
NOT_COMPARED = "not compared"
NAMES = ("task_key", "job_cluster_key", "environment_key", "name")  # what an item of a list goes by
READ_AT_START = ("tasks", "job_clusters", "environments", "parameters", "run_as")  # what a run keeps to its end
EMPTY: tuple[Any, ...] = (None, "", 0, False, {}, [])


@dataclass(frozen=True)
class Change:
    """One field: what it is, and what it would be."""

    path: str
    old: Any
    new: Any


@dataclass(frozen=True)
class JobPlan:
    """What would become of one job."""

    key: str
    action: Action
    name: str
    id: int | None
    body: Body  # as the release wants it
    grants: Grants = ()
    requests: tuple[str, ...] = ()
    goes_on: bool = False
    changes: tuple[Change, ...] = ()
    drift: tuple[Change, ...] = ()  # what somebody changed there by hand: ours -> theirs
    adopted: bool = False  # made by a deployment that did not come to its end
    stopped: bool = False  # by us
    restarts: bool = False  # a run goes on that is to be replaced

    @property
    def sent(self) -> Body:
        """The body as it is to be sent in the end."""
        return paused(self.body) if self.stopped else self.body

    @property
    def takes_away(self) -> bool:
        """Whether a job that is there would be deleted, which wants a word of the user."""
        return self.action == "delete" and self.id is not None

    @classmethod
    def read(cls, written: Body) -> JobPlan:
        """From what was written down."""
        lists = {key: tuple(written[key]) for key in ("grants", "requests")}
        changes = {key: tuple(Change(**one) for one in written[key]) for key in ("changes", "drift")}
        return cls(**{**written, **lists, **changes})


@dataclass(frozen=True)
class Plan:
    """What would become of one environment."""

    environment: str
    host: str
    root: str
    lineage: str
    serial: int
    release: str
    before: str  # the release that is there now
    wheels: tuple[Change, ...]
    jobs: tuple[JobPlan, ...]
    unfinished: str = ""  # the deployment that did not come to its end
    steps: str = NOT_COMPARED  # the verdicts on the steps' signatures

    @property
    def is_empty(self) -> bool:
        """Whether nothing would change."""
        same = self.release == self.before and not self.unfinished
        return same and all(job.action == "unchanged" for job in self.jobs)

    def text(self) -> str:
        """As it is written down."""
        return json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"

    @classmethod
    def saved(cls, file: Path) -> Plan:
        """Read from a file of the user's."""
        try:
            return cls.of(file.read_text())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            fix = "write one with this Headrace: headrace plan --save FILE"
            raise DeploymentError("the file is no saved plan", where=str(file), fix=fix) from error

    @classmethod
    def of(cls, text: str) -> Plan:
        """Read from what was written down."""
        told = json.loads(text)
        jobs = tuple(JobPlan.read(one) for one in told.pop("jobs"))
        return cls(**{**told, "wheels": tuple(Change(**one) for one in told["wheels"])}, jobs=jobs)


@dataclass(frozen=True)
class There:
    """A job as it is there now."""

    job: Found
    is_running: bool = False
    runs_other: bool = False  # a run goes on with other bytes than the wanted ones


def make_plan(
    *,
    environment: str,
    host: str,
    root: str,
    state: State,
    manifest: Manifest,
    before: Manifest | None,
    wanted: Mapping[str, Wanted],
    there: Mapping[str, There],
) -> Plan:
    """The plan that takes what is there to what is wanted."""
    jobs = [_job(key, wanted[key], state.jobs.get(key), there.get(key), key in state.stopped) for key in sorted(wanted)]
    for key in sorted(there.keys() - wanted.keys()):
        found = there[key].job
        jobs.append(JobPlan(key, "delete", str(found.settings.get("name", key)), found.id, {}))
    for key in sorted(state.jobs.keys() - there.keys() - wanted.keys()):
        gone = Change("job", state.jobs[key].id, None)
        jobs.append(JobPlan(key, "delete", str(state.jobs[key].body.get("name", key)), None, {}, drift=(gone,)))
    intent = state.intent
    return Plan(
        environment=environment,
        host=host,
        root=root,
        lineage=state.lineage,
        serial=state.serial,
        release=manifest.id,
        before=state.release,
        wheels=tuple(differences(_wheels(before), _wheels(manifest))) if manifest.id != state.release else (),
        jobs=tuple(jobs),
        unfinished=f"{intent.what} of {intent.release} by {intent.by} at {intent.at}" if intent else "",
    )


def _job(key: str, wanted: Wanted, deployed: Deployed | None, there: There | None, stopped: bool) -> JobPlan:
    body = wanted.body
    sent, name = paused(body) if stopped else body, str(body["name"])
    if there is None:
        gone = (Change("job", deployed.id, None),) if deployed else ()  # deleted by hand
        return JobPlan(
            key, "create", name, None, body, wanted.grants, wanted.requests, wanted.goes_on, drift=gone, stopped=stopped
        )
    if deployed is None:
        changes = tuple(differences(only(there.job.settings, sent), sent))
        drift: tuple[Change, ...] = ()
    else:
        grants = differences({"permissions": list(deployed.grants)}, {"permissions": list(wanted.grants)})
        changes = (*differences(deployed.sent, sent), *grants)
        drift = tuple(change for change in differences(deployed.told, there.job.settings) if _matters(change))
    other = there.is_running and any(change.path.startswith(READ_AT_START) for change in (*changes, *drift))
    restarts = wanted.goes_on and (other or there.runs_other or (deployed is not None and deployed.restart))
    changed = changes or drift or restarts or deployed is None
    return JobPlan(
        key=key,
        action="update" if changed else "unchanged",
        name=name,
        id=there.job.id,
        body=body,
        grants=wanted.grants,
        requests=wanted.requests,
        goes_on=wanted.goes_on,
        changes=changes,
        drift=drift,
        adopted=deployed is None,
        stopped=stopped,
        restarts=restarts,
    )


def differences(old: Any, new: Any, at: str = "") -> Iterator[Change]:
    """Field by field, down to what is not the same."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from differences(old.get(key), new.get(key), f"{at}.{key}" if at else key)
    elif isinstance(old, list) and isinstance(new, list):
        before, after = _by_name(old), _by_name(new)
        for name in dict.fromkeys((*before, *after)):
            yield from differences(before.get(name), after.get(name), f"{at}[{name}]")
    elif old != new:
        yield Change(at, old, new)


def only(theirs: Any, ours: Any) -> Any:
    """Of what is there, the part that we say: the platform adds fields of its own."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return {key: only(theirs[key], value) for key, value in ours.items() if key in theirs}
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        return [only(one, other) for one, other in zip(theirs, ours, strict=True)]
    return theirs


def _by_name(items: list[Any]) -> dict[str, Any]:
    """The items of a list by what they go by, else by their number."""
    found = {}
    for number, item in enumerate(items):
        names = [str(item[key]) for key in NAMES if key in item] if isinstance(item, dict) else []
        name = names[0] if names else str(number)
        found[name if name not in found else f"{name} {number}"] = item
    return found


def _matters(change: Change) -> bool:
    """What the platform fills in later, with nothing in it, was changed by nobody."""
    return change.old not in EMPTY or change.new not in EMPTY


def _wheels(manifest: Manifest | None) -> dict[str, str]:
    """name -> version and the beginning of its hash."""
    found = {}
    for path in manifest.wheels if manifest else ():
        name, version = path.removeprefix("wheels/").split("-")[:2]
        found[name] = f"{version} sha256:{manifest.files[path][:12]}" if manifest else ""
    return found
