"""Convert the failure of a query to a StepError that names the step, the root cause, the offsets and the log."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from headrace.config.models import Step
from headrace.errors import StepError, without_error_codes

# Lines of an error's text that do not name its cause.
NO_CAUSE = re.compile(
    r"^(Job aborted|Task \d+ in stage|\[STREAM_FAILED\]|An exception was raised by the Python Proxy|Traceback)"
)
CAUSED_BY = re.compile(r"^Caused by: (?:[\w.$]+(?:Exception|Error)): (.*)$")
PYTHON_ERROR = re.compile(r"^(?:[\w.]*\.)?(\w*(?:Error|Exception)): (.+)$")
PYTHON_WORKER = "An exception was thrown from the Python worker"
PYSPARK_CLASS = re.compile(r"^\w+: (?=\[[A-Z][\w.]+\] )")  # "AnalysisException: " before "[TABLE_NOT_FOUND] …"
OWN_ERROR = re.compile(r"^\w+Error: Error: ")  # before the message of a HeadraceError that was raised in a batch
# The fix in the text of such an error.
OWN_FIX = re.compile(r"^(?:[\w.]+\.)?\w+Error: Error: .*\n(?:  at   .*\n)?  fix: (.+)$", re.MULTILINE)
MAX_OFFSETS_LENGTH = 200


def step_error(step: Step, error: Any, log: Path | None = None) -> StepError:
    """Return the failure of a step as a StepError; `log` is the file with everything that Spark logged."""
    text = _full_text(error)
    own_fix = OWN_FIX.search(text)
    fix = f"correct the cause and start again: the batch will be repeated. Details: {log or 'the log of Spark'}"
    return StepError(
        f"step {step.name!r} failed: {root_cause(text)}",
        where=f"step {step.name!r}{_offsets(error)}",
        fix=own_fix[1] if own_fix else fix,
    )


def root_cause(text: str) -> str:
    """Return the message of an error's root cause as one line; `text` has the messages of the error and its causes.

    This is the message after the last "Caused by". If there is none, or if the causes only report that a Python worker
    failed, return the last Python error; without one, the first line that may name a cause.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    java = [match[1] for line in lines if (match := CAUSED_BY.match(line)) and "Traceback" not in line]
    python = [f"{match[1]}: {match[2]}" for line in lines if (match := PYTHON_ERROR.match(line))]
    plain = [line for line in lines if not NO_CAUSE.match(line) and not line.startswith(("at ", "File ", "==="))]
    if any(PYTHON_WORKER in line for line in lines):  # Java's causes only report that the Python worker failed
        java = []
    by_preference = [*java[-1:], *python[-1:], *plain, *lines]
    cause = next(iter(by_preference), "no reason given")
    return without_error_codes(PYSPARK_CLASS.sub("", OWN_ERROR.sub("", cause)))


def is_interrupt(error: Any) -> bool:
    """Return whether a query failed only because it was stopped."""
    return any(text in str(error) for text in ("Interrupted", "part of cancelled job group"))


def _full_text(error: Any) -> str:
    """Return the messages of the error and its causes. The error's own text omits the causes (pyspark 4.2.0)."""
    text = str(error)
    while (error := getattr(error, "_cause", None)) is not None:
        text += f"\nCaused by: {type(error).__name__}: {error}"
    return text


def _offsets(error: Any) -> str:
    """Return the offsets between which the query failed, as part of a location; empty if the error has none."""
    match = re.search(
        r"Current Committed Offsets: (\{.*?\})\s*\n\s*Current Available Offsets: (\{.*?\})\s*\n",
        str(error),
        re.S,
    )
    return f", after {_shortened(match[1])} up to {_shortened(match[2])}" if match else ""


def _shortened(text: str) -> str:
    line = re.sub(r"\s+", " ", text)
    return line if len(line) <= MAX_OFFSETS_LENGTH else line[: MAX_OFFSETS_LENGTH - 3] + "..."
