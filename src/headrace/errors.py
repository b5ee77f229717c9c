"""The exception hierarchy.

HeadraceError
├── ConfigurationError   the YAML files or the user's functions are invalid
├── SetupError           the machine lacks something: Java, memory, jars, a port, a service
├── GuardError           starting now would lose, duplicate or corrupt rows; nothing was written
├── StepError            a step failed while it ran
│   └── UnfinishedBatchError   a run ended in the middle of a batch that did not finish in time
├── DeploymentError      a workspace or cluster rejects a request, does not respond, or is locked by another deployment
└── DataError            the requested data does not exist or cannot be read

Exceptions of other libraries are converted to these where they are caught. Every error has a fix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

# The text of a py4j error: the failed call, then the Java exception's class and message. The pattern includes the call
# because lines that begin with a colon also occur in the query plans that other Spark errors contain.
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
    """Return the message of another library's error as one line."""
    text = str(getattr(error, "desc", None) or error).strip() or type(error).__name__
    if isinstance(error, LookupError):  # the message of a LookupError is only the key
        text = f"{type(error).__name__}: {text}"
    py4j_error = PY4J_ERROR.match(text)
    return without_error_codes(py4j_error[1] if py4j_error else text.splitlines()[0]).rstrip(";")


def without_error_codes(line: str) -> str:
    """Return a line of a Spark error without its error class and SQLSTATE."""
    return re.sub(r"^\[[\w.]+\] | SQLSTATE: \w+.*$", "", line)


class HeadraceError(Exception):
    """Base class of all errors that are shown to users. An error has one or more problems."""

    def __init__(self, message: str, *, fix: str, where: str = "") -> None:
        self.problems: tuple[Problem, ...] = (Problem(where, message, fix),)
        super().__init__(message)

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> HeadraceError:
        """Return one error with all of the problems, in the given order."""
        first, *others = problems
        error = cls(first.message, where=first.where, fix=first.fix)
        error.problems = (first, *others)
        return error

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


@contextmanager
def add_location(where: str) -> Iterator[None]:
    """Add the location `where` to problems that are raised in the `with` block without a location."""
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
    """A workspace or cluster rejects a request, does not respond, or is locked by another deployment."""


class DataError(HeadraceError):
    """The requested data does not exist or cannot be read."""
