"""The exception hierarchy.

HeadraceError
├── ConfigurationError   the YAML files, the user's functions or the names in a command are invalid
├── SetupError           the machine lacks something: Java, memory, jars, a port, a service
├── GuardError           starting now would lose, duplicate or corrupt rows; nothing was written
├── StepError            a step failed while it ran
│   └── UnfinishedBatchError   a run that was stopping ended in the middle of a batch
├── DeploymentError      a workspace or cluster rejects a request, does not respond, or is locked by another deployment
└── DataError            the requested data does not exist or cannot be read

Exceptions of other libraries are converted to these where they are caught. Every error has a fix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

__all__ = [
    "ConfigurationError",
    "DataError",
    "DeploymentError",
    "GuardError",
    "HeadraceError",
    "Problem",
    "SetupError",
    "StepError",
    "UnfinishedBatchError",
]

# The text of a py4j error: a line with the failed call, then the Java exception's class and message (group 1). The
# pattern includes the call, because the query plans in other Spark errors also have lines that begin with a colon.
PY4J_ERROR = re.compile(r"An error occurred while calling .*\n: (?:[\w.$]+: )?(.+)")


@dataclass(frozen=True, order=True)
class Problem:
    """One problem: its location (file:line, or the step), a message and a fix."""

    where: str
    message: str
    fix: str

    def __str__(self) -> str:
        location = f"\n  at   {self.where}" if self.where else ""
        return f"Error: {self.message}{location}\n  fix: {self.fix}"


def one_line(error: BaseException) -> str:
    """Return the first line of the message of another library's error, without Spark's error codes.

    For a py4j error, this is the message of the Java exception. If the message is empty, return the error's type.
    """
    message = getattr(error, "desc", None) or error  # `desc` is the message of a pyspark error, without the stack trace
    text = str(message).strip() or type(error).__name__
    if isinstance(error, LookupError):  # the message of a LookupError is only the key
        text = f"{type(error).__name__}: {text}"
    py4j_error = PY4J_ERROR.match(text)
    return without_error_codes(py4j_error[1] if py4j_error else text.splitlines()[0]).rstrip(";")


def without_error_codes(line: str) -> str:
    """Return a line of a Spark error without the error class at its start and the SQLSTATE at its end.

    "[TABLE_NOT_FOUND] No such table. SQLSTATE: 42P01" -> "No such table."
    """
    return re.sub(r"^\[[\w.]+\] | SQLSTATE: \w+.*$", "", line)


class HeadraceError(Exception):
    """Base class of all errors that are shown to users. An error has one or more problems."""

    def __init__(self, message: str, *, fix: str, where: str = "") -> None:
        self.problems: tuple[Problem, ...] = (Problem(where, message, fix),)
        super().__init__(message)

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> Self:
        """Return one error with all of the problems (at least one), in the given order."""
        first, *others = problems
        error = cls(first.message, where=first.where, fix=first.fix)
        error.problems = (first, *others)
        return error

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


@contextmanager
def add_location(where: str) -> Iterator[None]:
    """Add the location `where` to problems without a location that are raised in the `with` block."""
    try:
        yield
    except HeadraceError as error:
        problems = (Problem(problem.where or where, problem.message, problem.fix) for problem in error.problems)
        raise type(error).of(problems) from error


class ConfigurationError(HeadraceError):
    """The YAML files, the user's functions or the names in a command are invalid."""


class SetupError(HeadraceError):
    """The machine lacks something that the command needs: Java, memory, jars, a port, a service."""


class GuardError(HeadraceError):
    """Starting now would lose, duplicate or corrupt rows; nothing was written."""


class StepError(HeadraceError):
    """A step failed while it ran."""


class UnfinishedBatchError(StepError):
    """A run that was stopping ended in the middle of a batch, because no Spark task finished within `stop_grace`.

    The next run repeats the batch.
    """


class DeploymentError(HeadraceError):
    """A workspace or cluster rejects a request, does not respond, or is locked by another deployment."""


class DataError(HeadraceError):
    """The requested data does not exist or cannot be read."""
