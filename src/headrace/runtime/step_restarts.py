"""Prepare steps again during a run when the schemas of the tables that they stream have changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace.config.locations import KeyLocations
from headrace.config.models import Environment, Step
from headrace.errors import GuardError
from headrace.io.sinks.table_sink import add_columns
from headrace.runtime.prepare import PreparedStep, prepare, prepare_all
from headrace.runtime.recorder import Recorder
from headrace.runtime.session_settings import session_settings
from headrace.runtime.start_guard import StartGuard
from headrace.runtime.table_changes import ColumnChange, refusals, streamed_schemas, table_changes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class StepRestarts:
    """The steps of one run, and those of them that were prepared again."""

    spark: SparkSession
    environment: Environment
    steps: Sequence[tuple[KeyLocations, Step]]
    guard: StartGuard
    recorder: Recorder
    _prepared: dict[str, PreparedStep] = field(default_factory=dict)  # by name; only steps that were prepared again

    def with_current_schemas(self, step: PreparedStep) -> PreparedStep:
        """Return the step for its next query: prepared again if the tables that it streams have changed.

        A query that was opened before such a change would fail, or read wrong values, because Spark takes the columns
        of a batch by their positions (4.2.0). Raise HeadraceError if the step must not continue.
        """
        step = self._prepared.get(step.step.name, step)
        changes = self._table_changes(step)
        return self._prepare(step, changes) if changes else step

    def after_schema_change(self, step: PreparedStep) -> PreparedStep | None:
        """Return the step prepared again after its query has failed.

        Return None if the tables that it streams have not changed since it was prepared: then the failure has another
        cause, and the step is not started again. Raise HeadraceError if the
        step must not continue.
        """
        changes = self._table_changes(step)
        return self._prepare(step, changes) if changes else None

    def record_warnings(self, step: PreparedStep) -> None:
        """Record the warnings of a prepared step, which is about to start."""
        for warning in [*step.warnings, *self.guard.notes(step.step.name)]:
            self.recorder.record("warning", step.step.name, warning)

    def _table_changes(self, step: PreparedStep) -> list[ColumnChange]:
        return table_changes(self.spark, step.step, streamed_schemas(step.step, step.inputs), self.environment)

    def _prepare(self, step: PreparedStep, changes: list[ColumnChange]) -> PreparedStep:
        """Check all steps as at the start of the run, add columns to the tables of this one, and return it."""
        name = step.step.name
        if problems := list(refusals(name, changes, f"step {name!r}", self.guard.start_over(name))):
            raise GuardError.of(problems)
        self.recorder.record("warning", name, "starts again: " + "; ".join(map(str, changes)))
        checked, problems = prepare_all(self.spark, self.steps, self.environment, on_counts=self.recorder.on_counts)
        problems += self.guard.check_changes(checked)
        problems += [problem for each in checked for problem in each.problems]
        if problems:
            raise GuardError.of(problems)
        (ready,) = (each for each in checked if each.step.name == name)
        if ready.writer is None:
            # A step before it has yet to add columns. Until then, this step reads the table as it is.
            with session_settings(self.spark, step.step.settings):
                on_counts = self.recorder.on_counts(name)
                ready = prepare(self.spark, step.step, self.environment, on_counts=on_counts, pending={})
        self._prepared[name] = ready
        self.record_warnings(ready)
        add_columns(self.spark, ready.step, self.environment, ready.schema)
        self.guard.record_start(name)
        return ready
