"""A change between two signatures of a query, its verdict, and what resolves a change that is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import total_ordering
from typing import Literal

# The changes that need a new generation, but that Spark does not always refuse: a directory or a table may have been
# renamed.
RENAMED_SOURCE = re.compile(r"sources(\.\w+\.path|\[\d+\]\.name)")


@total_ordering
class Verdict(Enum):
    """What a change means for a checkpoint and for the rows written so far; in order of severity."""

    SAFE = "safe"  # the query continues as if it had not changed
    SAFE_FOR_NEW_ROWS = "safe for new rows"  # new rows are computed in the new way, written rows stay as they are
    UNKNOWN = "unknown"  # depends on user code, or could not be compared
    NEEDS_NEW_GENERATION = "needs a new generation"  # the old checkpoint does not fit the query
    WRONG_ROWS = "wrong rows"  # Spark accepts the old checkpoint, but writes wrong rows

    def __lt__(self, other: Verdict) -> bool:
        order = list(Verdict)
        return order.index(self) < order.index(other)


@dataclass(frozen=True)
class Change:
    """One change: its path in the signature, both values as short texts, the verdict and a sentence for the user."""

    path: str
    old: str
    new: str
    verdict: Verdict
    sentence: str

    @property
    def is_refused(self) -> bool:
        """Whether a step with this change does not start, unless it accepts the change."""
        return self.verdict >= Verdict.UNKNOWN


def change(path: str, what: str, old: str, new: str, verdict: Verdict, effect: str) -> Change:
    """Return a change whose sentence names what has changed, both values, and the effect. An empty value is "none"."""
    old, new = old or "none", new or "none"
    return Change(path, old, new, verdict, f"{what} {old} → {new}: {effect}")


def can_be_accepted(changes: Iterable[Change]) -> bool:
    """Return whether Spark may start a step with these changes, if the user accepts them."""
    unfit = [each for each in changes if each.verdict is Verdict.NEEDS_NEW_GENERATION]
    return all(RENAMED_SOURCE.fullmatch(each.path) for each in unfit)


def fix_of_refusal(refused: Change, digest: str, start_over: str) -> str:
    """Return what a user can do about a refused change.

    `digest` is that of the old signature; empty if there is none, or if the changes cannot be accepted. `start_over` is
    the command that resets the step.
    """
    if refused.path.endswith(".partition_by"):
        fix = f"undo the change, or start over ({start_over}) and drop the table before the next run"
        return f"{fix}: a truncated table keeps its partition columns"
    fix = f"undo the change, or start over: {start_over}"
    if not digest:
        return fix
    accept = f'accept: ["{digest}"] in the step'  # in quotes, because YAML reads a digest without letters as a number
    if refused.verdict is Verdict.UNKNOWN:
        return f"if the new code suits the old state, {accept}; otherwise {fix}"
    return f"{fix}; to start all the same, {accept}"


@dataclass(frozen=True)
class StateCheck:
    """Spark's verdict on the state of a checkpoint: accepted, refused with a reason, or not checked and why."""

    outcome: Literal["accepted", "refused", "not checked"]
    reason: str = ""

    @classmethod
    def accepted(cls) -> StateCheck:
        return cls("accepted")

    @classmethod
    def refused(cls, reason: str) -> StateCheck:
        return cls("refused", reason)

    @classmethod
    def not_checked(cls, why: str) -> StateCheck:
        return cls("not checked", why)

    @property
    def is_accepted(self) -> bool:
        return self.outcome == "accepted"

    @property
    def is_refused(self) -> bool:
        return self.outcome == "refused"
