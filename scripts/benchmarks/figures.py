"""The results of a section: figures with their targets, rendered as text or JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Figure:
    """A measured number and its target."""

    name: str
    value: float
    bound: Literal["at least", "at most"] | None = None  # None if there is no target
    target: float = 0.0

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met; None if there is no target."""
        if self.bound is None:
            return None
        return self.value >= self.target if self.bound == "at least" else self.value <= self.target

    def line(self) -> str:
        """Return the figure as one line of text."""
        if self.bound is None:
            return f"     {self.name:<66} {self.value:>9.2f}"
        mark = "ok  " if self.is_met else "MISS"
        return f"{mark} {self.name:<66} {self.value:>9.2f}  {self.bound} {self.target:g}"


@dataclass(frozen=True)
class Section:
    """The figures of one section and the measurements behind them."""

    title: str
    figures: list[Figure]
    notes: list[str] = field(default_factory=list)  # lines of text above the figures
    raw: dict[str, Any] = field(default_factory=dict)  # the measurements, as values for JSON

    def text(self) -> str:
        """Return the section as text."""
        notes = (f"     {note}" for note in self.notes)
        return "\n".join([self.title, *notes, *(figure.line() for figure in self.figures)])

    def facts(self) -> dict[str, Any]:
        """Return the section as values for JSON."""
        figures = [{**asdict(figure), "is_met": figure.is_met} for figure in self.figures]
        return {"title": self.title, "notes": self.notes, "figures": figures, "raw": self.raw}


def quantile(values: list[float], share: float) -> float:
    """Return the smallest value that is greater than or equal to a share of the values; 0.95 is the 95th percentile."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]
