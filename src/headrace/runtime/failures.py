"""What Spark says when a query fails, in one line: the step, the cause, the offsets, where the log is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from headrace.config.models import Step
from headrace.errors import StepError, without_error_codes

NOISE = re.compile(
    r"^(Job aborted|Task \d+ in stage|\[STREAM_FAILED\]|An exception was raised by the Python Proxy|Traceback)"
)
CAUSED_BY = re.compile(r"^Caused by: (?:[\w.$]+(?:Exception|Error)): (.*)$")
PYTHON_ERROR = re.compile(r"^(?:[\w.]*\.)?(\w*(?:Error|Exception)): (.+)$")
IN_PYTHON = "An exception was thrown from the Python worker"
CODED = re.compile(r"^\w+: (?=\[[A-Z][\w.]+\] )")  # a class of pyspark's before Spark's own error class
OURS = re.compile(r"^\w+Error: Error: ")  # an error of ours that was raised in a batch
OUR_FIX = re.compile(r"^(?:[\w.]+\.)?\w+Error: Error: .*\n(?:  at   .*\n)?  fix: (.+)$", re.MULTILINE)


def step_error(step: Step, error: Any, log: Path | None = None) -> StepError:
    """The step's failure as a user reads it; `log` has all that Spark said."""
    offsets, text = _offsets(error), _full_text(error)
    fix = f"mend the cause and start again: the batch is done anew; all of it is in {log or 'the log of Spark'}"
    own = OUR_FIX.search(text)
    return StepError(
        f"step {step.name!r} failed: {root_cause(text)}",
        where=f"step {step.name!r}{offsets}",
        fix=own[1] if own else fix,
    )


def root_cause(text: str) -> str:
    """The deepest cause that says something, in one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    deepest = [match[1] for line in lines if (match := CAUSED_BY.match(line)) and "Traceback" not in line]
    python = [f"{match[1]}: {match[2]}" for line in lines if (match := PYTHON_ERROR.match(line))]
    plain = [line for line in lines if not NOISE.match(line) and not line.startswith(("at ", "File ", "==="))]
    if any(IN_PYTHON in line for line in lines):  # Java's causes only say that Python had one
        deepest = []
    said = next(iter([*deepest[-1:], *python[-1:], *plain, *lines]), "no reason given")
    return without_error_codes(CODED.sub("", OURS.sub("", said)))


def _full_text(error: Any) -> str:
    """All that an error says, with its causes, which the message leaves out (pyspark 4.2.0)."""
    text = str(error)
    while (error := getattr(error, "_cause", None)) is not None:
        text += f"\nCaused by: {type(error).__name__}: {error}"
    return text


def is_interrupt(error: Any) -> bool:
    """Whether a query only ended because it was told to."""
    return any(sign in str(error) for sign in ("Interrupted", "part of cancelled job group"))


def _offsets(error: Any) -> str:
    found = re.search(
        r"Current Committed Offsets: (\{.*?\})\s*\n\s*Current Available Offsets: (\{.*?\})\s*\n",
        str(error),
        re.S,
    )
    return f", after {_short(found[1])} up to {_short(found[2])}" if found else ""


def _short(text: str) -> str:
    folded = re.sub(r"\s+", " ", text)
    return folded if len(folded) <= 200 else folded[:197] + "..."
