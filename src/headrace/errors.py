"""What can go wrong, as one tree.

HeadraceError
├── ConfigurationError   what the YAML files or the user's functions say cannot be carried out
├── SetupError           the machine lacks something: Java, memory, jars, a port, a service
├── GuardError           starting now would lose, double or falsify rows: nothing was written
├── StepError            a step failed while it ran
│   └── UnfinishedBatchError   a run ended in the middle of a batch, which did not end in time
├── DeploymentError      a workspace or cluster refuses, does not answer, or is being changed by somebody else
└── DataError            asked-for data is not there or cannot be read

Foreign errors become ours once, at the edge that meets them. Each problem says how to mend it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

# An error of py4j names the failed call first, then Java's class and message. Other errors of Spark contain query
# plans, whose lines may begin with a colon as well.
PY4J_ERROR = re.compile(r"An error occurred while calling .*\n: (?:[\w.$]+: )?(.+)")


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong: where it stands, what it is, how to mend it."""

    where: str
    message: str
    fix: str

    def __str__(self) -> str:
        place = f"\n  at   {self.where}" if self.where else ""
        return f"Error: {self.message}{place}\n  fix: {self.fix}"


def one_line(error: BaseException) -> str:
    """What a foreign error says, in one line."""
    text = str(getattr(error, "desc", None) or error).strip() or type(error).__name__
    if isinstance(error, LookupError):  # which says the key and nothing else
        text = f"{type(error).__name__}: {text}"
    java = PY4J_ERROR.match(text)
    return without_error_codes(java[1] if java else text.splitlines()[0]).rstrip(";")


def without_error_codes(line: str) -> str:
    """The line without Spark's error class and SQLSTATE."""
    return re.sub(r"^\[[\w.]+\] | SQLSTATE: \w+.*$", "", line)


class HeadraceError(Exception):
    """Base of all errors that a user is meant to read; holds one problem or several."""

    def __init__(self, message: str, *, fix: str, where: str = "") -> None:
        self.problems: tuple[Problem, ...] = (Problem(where, message, fix),)
        super().__init__(message)

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> HeadraceError:
        """One error that tells all of the problems, in the order given."""
        found = tuple(problems)
        error = cls(found[0].message, where=found[0].where, fix=found[0].fix)
        error.problems = found
        return error

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


@contextmanager
def add_location(where: str) -> Iterator[None]:
    """Here stand the problems of this block that do not say where they stand."""
    try:
        yield
    except HeadraceError as error:
        problems = (Problem(one.where or where, one.message, one.fix) for one in error.problems)
        raise type(error).of(problems) from error


class ConfigurationError(HeadraceError):
    """The configuration cannot be carried out as it is written."""


class SetupError(HeadraceError):
    """The machine lacks something that the run needs."""


class GuardError(HeadraceError):
    """Starting now would lose, double or falsify rows; nothing was written."""


class StepError(HeadraceError):
    """A step failed while it ran."""


class UnfinishedBatchError(StepError):
    """A run that was asked to stop ended in the middle of a batch. The next run repeats the batch."""


class DeploymentError(HeadraceError):
    """A workspace or cluster refuses, does not answer, or is being changed by somebody else."""


class DataError(HeadraceError):
    """Data that was asked for is not there, or cannot be read."""
