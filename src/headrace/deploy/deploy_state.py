"""What an environment remembers of its deployments: jobs, releases, who is changing it now."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any

VERSION = 1  # of what is written

Body = dict[str, Any]
Grants = tuple[dict[str, str], ...]


TRIGGERS = ("continuous", "schedule", "trigger")


def paused(body: Body) -> Body:
    """The job with whatever starts it by itself held back."""
    return {key: {**value, "pause_status": "PAUSED"} if key in TRIGGERS else value for key, value in body.items()}


def runs_by_itself(body: Body) -> bool:
    """Whether a run of it is started at once, and again after its end."""
    return bool((body.get("continuous") or {}).get("pause_status") == "UNPAUSED")


@dataclass(frozen=True)
class Deployed:
    """A job as it was last sent, and as it was told back then."""

    id: int
    release: str
    body: Body  # as the release wants it
    told: Body
    held: bool = False  # it was sent with its triggers held back
    grants: Grants = ()
    requests: tuple[str, ...] = ()  # the files by which its runs are asked to stop
    goes_on: bool = False  # its runs do not end by themselves
    restart: bool = False  # a run from before is still to be replaced

    @property
    def sent(self) -> Body:
        """The body as it was sent."""
        return paused(self.body) if self.held else self.body

    @classmethod
    def read(cls, written: Body) -> Deployed:
        """From what was written down."""
        return cls(**{**written, "grants": tuple(written["grants"]), "requests": tuple(written["requests"])})


@dataclass(frozen=True)
class Entry:
    """One deployment that came to its end."""

    number: int
    what: str  # deploy, promote, rollback
    release: str
    at: str
    by: str
    came_from: str = ""  # the environment that it was promoted from
    commit: str = ""
    dirty: bool = False
    ended: str = "done"  # or what became of it


@dataclass(frozen=True)
class Intent:
    """What is being done, written before it is: whoever finds it later knows what to look for."""

    what: str
    release: str
    at: str
    by: str
    creates: dict[str, str] = field(default_factory=dict)  # job -> the name under which it may have been made
    before: dict[str, Deployed] = field(default_factory=dict)  # the jobs that are changed, as they were

    @classmethod
    def read(cls, written: Body) -> Intent:
        """From what was written down."""
        return cls(**{**written, "before": {key: Deployed.read(one) for key, one in written["before"].items()}})


@dataclass(frozen=True)
class State:
    """All that is known of one environment; each writing has the next serial."""

    lineage: str
    serial: int = 0
    release: str = ""  # the last one that was applied to its end
    jobs: dict[str, Deployed] = field(default_factory=dict)
    stopped: tuple[str, ...] = ()  # jobs that we were asked to stop
    intent: Intent | None = None
    history: tuple[Entry, ...] = ()

    def text(self) -> str:
        """As it is written down."""
        return json.dumps({"version": VERSION, **asdict(self)}, indent=1, sort_keys=True) + "\n"

    @classmethod
    def of(cls, text: str) -> State:
        """Read from what was written down; ValueError when another version wrote it."""
        told = json.loads(text)
        version = told.pop("version", None)
        if version != VERSION:
            raise ValueError(f"version {version}, and this one reads {VERSION}")
        jobs = {key: Deployed.read(one) for key, one in told.pop("jobs").items()}
        history = tuple(Entry(**one) for one in told.pop("history"))
        intent = told.pop("intent")
        return cls(
            **{**told, "stopped": tuple(told["stopped"])},
            jobs=jobs,
            history=history,
            intent=Intent.read(intent) if intent else None,
        )

    def with_job(self, key: str, deployed: Deployed) -> State:
        """The state once the job is as given."""
        return replace(self, jobs={**self.jobs, key: deployed})

    def without_job(self, key: str) -> State:
        """The state once the job is gone."""
        kept = {name: one for name, one in self.jobs.items() if name != key}
        return replace(self, jobs=kept, stopped=tuple(name for name in self.stopped if name != key))

    def with_entry(self, entry: Entry) -> State:
        """The state once a deployment has come to its end."""
        return replace(self, intent=None, history=(*self.history, entry))
