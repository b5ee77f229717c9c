"""Ask a streaming query for its state, and stop it, although it or the JVM may have failed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


def has_ended(query: StreamingQuery, *, timeout: float) -> bool:
    """Return whether the query ends within the timeout, successfully or not."""
    from pyspark.errors import StreamingQueryException

    with suppress(StreamingQueryException):
        return bool(query.awaitTermination(timeout))  # type: ignore[arg-type]
    return True


def may_be_active(query: StreamingQuery) -> bool:
    """Return whether the query is active; True if that cannot be found out."""
    with suppress(Exception):  # a signal that interrupts a call also breaks the connection to the JVM
        return bool(query.isActive)
    return True


def stop_quietly(query: StreamingQuery) -> None:
    """Stop the query. Ignore errors."""
    with suppress(Exception):  # the process is about to end
        query.stop()


def last_batch(query: StreamingQuery) -> Any:
    """Return the number of the last batch whose progress Spark has reported; None if there is none."""
    progress = query.lastProgress
    return progress["batchId"] if progress else None
