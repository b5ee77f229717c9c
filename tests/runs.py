"""Runs of a small pipeline, for tests that stop them, let steps fail or change triggers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.config.models import Bundle, Trigger
from headrace.runtime.events import read_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flows import Flow

LINES = "lines: {layer: bronze, reads: {lines: {source: lines}}, writes: {table: lines}}"
PICKY = """
picky:
  layer: bronze
  reads: {lines: {source: lines, expect: [{matches: {value: "[a-z]+"}, on_fail: stop}]}}
  writes: {table: picky}
"""


def with_trigger(bundle: Bundle, trigger: Trigger, **triggers: Trigger) -> Bundle:
    """Return the bundle with this trigger for all steps but those named."""
    environment = bundle.environment.model_copy(update={"trigger": trigger, "triggers": triggers})
    return bundle.model_copy(update={"environment": environment})


def values(flow: Flow, table: str) -> list[Any]:
    """Return the sorted column `value` of a table."""
    return sorted(row["value"] for row in flow.read(table))


def recorded(flow: Flow) -> list[str]:
    """Return what the events of the pipeline are, but for batches."""
    return [event.what for event in read_events(flow.bundle().run_files_directory, "flow") if event.what != "batch"]


def count_with_timers(rows: DataFrame, /) -> DataFrame:
    """Count values in a state of its own, which expires after an hour of processing time."""

    def count(key: Any, frames: Any, state: Any) -> Any:
        import pandas

        total = sum(map(len, frames)) + (state.get[0] if state.exists else 0)
        state.update((total,))
        state.setTimeoutDuration(3_600_000)
        yield pandas.DataFrame({"value": [key[0]], "total": [total]})

    return rows.groupBy("value").applyInPandasWithState(
        count, "value STRING, total INT", "total INT", "append", "ProcessingTimeTimeout"
    )
