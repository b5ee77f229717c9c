"""Ask Spark whether the state of a checkpoint fits a query, without starting the query.

Before its first batch after a restart, Spark compares the query's operators and the types in their state with the
metadata of the state. Planning that batch is enough for the comparison: no source is read and no state is loaded.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.config.models import local_path
from headrace.errors import one_line
from headrace.signatures.changes import StateCheck
from headrace.signatures.checkpoint_copy import CheckpointCopy
from headrace.signatures.incremental_plan import plan_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Error conditions that mean that the state does not fit (4.2.0). If the state cannot be read, there are others.
STATE_ERROR = re.compile(
    r"\[((?:STATE_STORE_(?!CANNOT|FAILED)|STREAMING_STATEFUL_OPERATOR_|STATEFUL_PROCESSOR_|TRANSFORM_WITH_STATE_)[\w.]+)\]"
    r" (.+)"
)


def check_state(result: DataFrame, output_mode: str, checkpoint: str) -> StateCheck:
    """Return whether Spark accepts the state in a checkpoint for a query.

    `result` is the query's frame over its real inputs. The checkpoint and the session stay as they are. If the state
    cannot be checked, return why; no error is raised.
    """
    path = local_path(checkpoint)
    if not path:
        return StateCheck.not_checked(f"{checkpoint} is not a local directory")
    with tempfile.TemporaryDirectory(prefix="headrace-state-check-") as directory:
        try:
            copy = CheckpointCopy(Path(path), Path(directory) / "checkpoint")
        except (OSError, ValueError) as error:
            return StateCheck.not_checked(f"the checkpoint cannot be read: {one_line(error)}")
        if not copy.has_batches:
            return StateCheck.not_checked("the checkpoint has no batch")
        try:
            _plan_next_batch(result, output_mode, copy)
        except Exception as error:  # Spark's state errors, and whatever its internals raise in other versions
            return _verdict(error)
    return StateCheck.accepted()


def _plan_next_batch(result: DataFrame, output_mode: str, copy: CheckpointCopy) -> None:
    """Plan the batch that a restart would begin with, in a session of its own with the settings of the checkpoint."""
    session_in_jvm: Any = result.sparkSession._jsparkSession
    session = session_in_jvm.cloneSession()
    settings = copy.settings()
    for key, value in settings.items():
        session.conf().set(key, value)
    plan = plan_batch(result, output_mode, state=copy.state, batch=copy.next_batch, settings=settings, session=session)
    plan.executedPlan()


def _verdict(error: Exception) -> StateCheck:
    """Return "refused" for an error about the state, and "not checked" for any other."""
    java_error = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    text = f"{error}\n{java_error.toString() if java_error is not None else ''}"
    if match := STATE_ERROR.search(text):
        return StateCheck.refused(f"{match[1]}: {_first_sentence(match[2])}")
    return StateCheck.not_checked(f"{type(error).__name__}: {one_line(error)}")


def _first_sentence(text: str) -> str:
    return text.split(". ")[0].rstrip(".:")
