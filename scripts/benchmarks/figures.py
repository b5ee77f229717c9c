"""What a section found: figures with their targets, as text and as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Literal


@dataclass(frozen=True)
class Figure:
    """One number, and what it should be."""

    name: str
    value: float
    bound: Literal["at least", "at most"] | None = None
    target: float = 0.0

    @property
    def holds(self) -> bool | None:
        """Whether the target is met; None without one."""
        if self.bound is None:
            return None
        return self.value >= self.target if self.bound == "at least" else self.value <= self.target

    def line(self) -> str:
        """For people."""
        if self.bound is None:
            return f"     {self.name:<66} {self.value:>9.2f}"
        verdict = "ok  " if self.holds else "MISS"
        return f"{verdict} {self.name:<66} {self.value:>9.2f}  {self.bound} {self.target:g}"


@dataclass(frozen=True)
class Section:
    """One section's figures, and the measurements that they come from."""

    title: str
    figures: list[Figure]
    notes: list[str] = field(default_factory=list)
    raw: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """For people."""
        return "\n".join([self.title, *(f"     {note}" for note in self.notes), *(f.line() for f in self.figures)])

    def facts(self) -> dict[str, Any]:
        """For programs."""
        figures = [{**asdict(figure), "holds": figure.holds} for figure in self.figures]
        return {"title": self.title, "notes": self.notes, "figures": figures, "raw": self.raw}


def quantile(values: list[float], share: float) -> float:
    """The value below which that share of the values lies."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def middle(values: list[float]) -> float:
    """The median."""
    return median(values)
