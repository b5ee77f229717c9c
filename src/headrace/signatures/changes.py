"""A change between two signatures of a query, and its verdict."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import total_ordering


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


def change(path: str, what: str, old: str, new: str, verdict: Verdict, effect: str) -> Change:
    """Return a change whose sentence names what has changed, both values, and the effect. An empty value is "none"."""
    old, new = old or "none", new or "none"
    return Change(path, old, new, verdict, f"{what} {old} → {new}: {effect}")
