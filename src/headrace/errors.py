"""The exception hierarchy.

HeadraceError
├── ConfigurationError   the YAML files or the user's functions are invalid
├── SetupError           the machine lacks something: Java, memory, jars, a port, a service
├── GuardError           starting now would lose, duplicate or corrupt rows; nothing was written
├── StepError            a step failed while it ran
│   └── UnfinishedBatchError   a run ended in the middle of a batch that did not finish in time
├── DeploymentError      a workspace or cluster refuses, does not answer, or is being changed by someone else
└── DataError            the requested data does not exist or cannot be read

Exceptions of other libraries are converted once, where they are caught. Each problem has a fix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

# py4j's errors name the failed call first, then the Java class and its message. Other Spark errors contain query
# plans, whose lines may begin with a colon too.
PY4J_ERROR = re.compile(r"An error occurred while calling .*\n: (?:[\w.$]+: )?(.+)")


@dataclass(frozen=True, order=True)
class Problem:
    """One problem: its location, a message and a fix."""

    where: str
    message: str
    fix: str

    def __str__(self) -> str:
        location = f"\n  at   {self.where}" if self.where else ""
        return f"Error: {self.message}{location}\n  fix: {self.fix}"


def one_line(error: BaseException) -> str:
    """Return the message of another library's error as one line."""
    text = str(getattr(error, "desc", None) or error).strip() or type(error).__name__
    if isinstance(error, LookupError):  # its message is only the key
        text = f"{type(error).__name__}: {text}"
    java = PY4J_ERROR.match(text)
    return without_error_codes(java[1] if java else text.splitlines()[0]).rstrip(";")


def without_error_codes(line: str) -> str:
    """Return the line without Spark's error class and SQLSTATE."""
    return re.sub(r"^\[[\w.]+\] | SQLSTATE: \w+.*$", "", line)


class HeadraceError(Exception):
    """Base class of all errors that are shown to users; has one or more problems."""

    def __init__(self, message: str, *, fix: str, where: str = "") -> None:
        self.problems: tuple[Problem, ...] = (Problem(where, message, fix),)
        super().__init__(message)

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> HeadraceError:
        """Return one error with all of the problems, in the order given."""
        first, *others = problems
        error = cls(first.message, where=first.where, fix=first.fix)
        error.problems = (first, *others)
        return error

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


@contextmanager
def add_location(where: str) -> Iterator[None]:
    """Add a location to the problems raised in this block that lack one."""
    try:
        yield
    except HeadraceError as error:
        problems = (Problem(problem.where or where, problem.message, problem.fix) for problem in error.problems)
        raise type(error).of(problems) from error


class ConfigurationError(HeadraceError):
    """The configuration is invalid."""


class SetupError(HeadraceError):
    """The machine lacks something that the run needs."""


class GuardError(HeadraceError):
    """Starting now would lose, duplicate or corrupt rows; nothing was written."""


class StepError(HeadraceError):
    """A step failed while it ran."""


class UnfinishedBatchError(StepError):
    """A run that was asked to stop ended in the middle of a batch. The next run repeats the batch."""


class DeploymentError(HeadraceError):
    """A workspace or cluster refuses, does not answer, or is being changed by someone else."""


class DataError(HeadraceError):
    """The requested data does not exist or cannot be read."""
