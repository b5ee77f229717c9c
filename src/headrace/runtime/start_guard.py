"""Guard the start of a run: checkpoints must belong to the tables of their steps, and fit the steps' queries.

Nothing is written before all steps have passed. Then the guard records, for the next start, what each step computes and
which tables belong to its checkpoint. It writes this to `signature.json` and to the properties of the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headrace.checkpoints.generations import write_generation
from headrace.checkpoints.lock import Lock
from headrace.checkpoints.pairing import StepState, check_pair
from headrace.checkpoints.step_record import StepRecord, write_record
from headrace.config.models import Bundle, Step
from headrace.errors import GuardError, HeadraceError, Problem
from headrace.io.delta.delta_table import table_of
from headrace.io.delta.table_identity import set_writers, table_identity, table_state, truncate
from headrace.io.sinks.quarantine import tables_with_quarantine
from headrace.runtime.change_guard import StepChanges, change_problems, described_sources, find_changes
from headrace.runtime.input_starts import with_starts
from headrace.runtime.session_settings import frozen_settings
from headrace.runtime.step_checkpoint import StepCheckpoint, all_queries, open_checkpoint
from headrace.runtime.stored_release import with_current_versions
from headrace.runtime.table_changes import (
    described_schemas,
    recorded_schemas,
    refusals,
    streamed_schemas,
    table_changes,
)
from headrace.signatures.signature import Signature
from headrace.spark.known_settings import misspelt_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.runtime.prepare import PreparedStep

MAX_CHANGES = 100  # the newest, in a step's record


class StartGuard:
    """The guard of one run: the steps of a pipeline with their checkpoints."""

    def __init__(
        self,
        spark: SparkSession,
        bundle: Bundle,
        pipeline: str,
        steps: Iterable[Step],
        locks: Mapping[str, Lock] | None = None,
        *,
        release: str = "",
    ) -> None:
        self._spark, self._bundle, self._pipeline, self._release = spark, bundle, pipeline, release
        self._option = bundle.environment.option
        self._steps = {step.name: step for step in steps}
        self.checkpoints = {name: open_checkpoint(bundle, pipeline, name, spark) for name in self._steps}
        self._signatures: dict[str, Signature | None] = {}
        self._schemas: dict[str, dict[str, dict[str, str]]] = {}  # of the tables that each step streams, by input
        self._mismatched: set[str] = set()  # steps whose checkpoint and tables do not belong together
        self.changes: dict[str, StepChanges] = {}  # since the checkpoints were written; no entry without a batch
        self._tables: dict[str, dict[str, str]] = {}  # the ids of the tables of each step, by name, as recorded
        self._locks = locks or {}  # of the steps that this run has locked
        self.restored_settings: dict[str, Mapping[str, str]] = {}  # what Spark restores from each step's checkpoint

    def use_starts(self) -> list[Step]:
        """Return the steps with the starts that resets have chosen for their inputs. From now on, check these steps."""
        self._steps = {name: with_starts(step, self.checkpoints[name].generation) for name, step in self._steps.items()}
        return list(self._steps.values())

    def start_over(self, name: str) -> str:
        """Return the command that starts a step over, for messages."""
        return f"headrace reset {self._pipeline} --step {name}{self._option}"

    def check_pairs(self) -> list[Problem]:
        """Return the problems of steps whose checkpoint and tables do not belong together."""
        problems: list[Problem] = []
        for name in self._steps:
            try:
                found = self._check_step(name)
            except HeadraceError as error:
                found = list(error.problems)
            self._mismatched |= {name} if found else set()
            problems += [*found, *self._check_upstream(name), *self._check_inputs(name)]
        return problems

    def check_changes(self, prepared: Iterable[PreparedStep]) -> list[Problem]:
        """Return the problems of steps whose queries no longer fit their checkpoints."""
        problems: list[Problem] = []
        for ready in prepared:
            step = ready.step
            if self._steps.get(step.name) is not step or step.name in self._mismatched:
                continue  # a step of another pipeline, or one that has a problem already, from `check_pairs`
            self._signatures[step.name] = ready.signature
            self._schemas[step.name] = described_schemas(streamed_schemas(step, ready.inputs))
            checkpoint = self.checkpoints[step.name]
            content = checkpoint.read()
            if content.is_new or content.damage or ready.stream is None:
                continue
            record = checkpoint.read_record() or StepRecord()
            if ready.signature is not None:
                record = with_current_versions(self._spark, self._bundle, record, ready.signature)
            environment = self._bundle.environment
            found = find_changes(step, environment, record, ready.signature, ready.stream, checkpoint.spark_directory)
            self.changes[step.name] = found
            self.restored_settings[step.name] = content.settings
            locations = self._bundle.locations_of(self._pipeline)
            problems += change_problems(step, found, locations, self.start_over(step.name))
        return problems

    def notes(self, name: str) -> list[str]:
        """Return the warnings for a step that starts: changes that were not refused, and settings without effect."""
        found = self.changes.get(name, StepChanges())
        frozen = frozen_settings(self._spark, self._steps[name], self.restored_settings.get(name, {}))
        return [*found.notes, *frozen, *misspelt_settings(self._spark, self._steps[name].settings)]

    def record_start(self, name: str) -> None:
        """Truncate the tables that a reset left to this start. Then record the start, and the tables that exist."""
        checkpoint = self.checkpoints[name]
        self._truncate_tables(checkpoint)
        writer = checkpoint.writer
        started_at = datetime.now(UTC).isoformat(timespec="seconds")
        old, signature = checkpoint.read_record(), self._signatures.get(name)
        found = self.changes.get(name, StepChanges())
        changes = [{"at": started_at, "release": self._release, "change": note} for note in found.notes]
        record = StepRecord(
            writer.bundle,
            writer.pipeline,
            writer.step,
            self._release,
            started_at,
            inputs=described_sources(self._steps[name], self._bundle.environment) | self._schemas.get(name, {}),
            # If the new signature could not be computed, the old one stays.
            signature=signature.to_json() if signature else old.signature if old else {},
            changes=[*(old.changes if old else []), *changes][-MAX_CHANGES:],
        )
        write_record(checkpoint.files, writer.generation, record)
        self.record_tables(name)

    def record_tables(self, name: str) -> None:
        """Record the tables of a step that exist and are not recorded yet, and name the step in their properties.

        The step's query must not be running: a change of a table's properties would make it fail.
        """
        checkpoint = self.checkpoints[name]
        writer = checkpoint.writer
        record = checkpoint.read_record() or StepRecord()
        tables = dict(record.tables)
        for table_name in self._steps[name].tables_written:
            table = table_of(self._bundle.environment, table_name)
            identity = table_identity(self._spark, table) if table_name not in tables else None
            if identity is not None:
                tables[table_name], old_writers = identity
                writers = (replace(writer, table=tables[table_name]),)
                if old_writers != writers:
                    set_writers(self._spark, table, writers)
        self._tables[name] = tables
        if tables != record.tables:
            write_record(checkpoint.files, writer.generation, replace(record, tables=tables))

    def require_unchanged(self, name: str) -> None:
        """Raise GuardError if a running step has lost its checkpoint or a table. This takes milliseconds.

        Otherwise the step's next query would read everything again with a new checkpoint, or write to a new table.
        """
        checkpoint, lost = self.checkpoints[name], ""
        if name in self._locks and self._locks[name].is_lost:
            lost = f"the checkpoint of step {name!r} was removed or replaced while the step was running"
        for table_name, table_id in self._tables.get(name, {}).items():
            identity = table_identity(self._spark, table_of(self._bundle.environment, table_name))
            if identity != (table_id, (replace(checkpoint.writer, table=table_id),)):
                lost = (
                    f"table {table_name!r} was removed or replaced, or got another writer, while step {name!r} wrote it"
                )
        if lost:
            fix = f"restore it; or start over: {self.start_over(name)}"
            raise GuardError(lost, where=self._bundle.where(self._pipeline, "steps", name), fix=fix)

    def _truncate_tables(self, checkpoint: StepCheckpoint) -> None:
        """Truncate the tables whose truncation a reset left to the next start of the step."""
        generation = checkpoint.generation
        for name, pending in generation.pending_tables.items():
            table = table_of(self._bundle.environment, name)
            if table.exists(self._spark):
                truncate(self._spark, table)
            generation = generation.with_table(name, pending.truncated())
            write_generation(checkpoint.files, generation)

    def _check_upstream(self, name: str) -> Iterator[Problem]:
        """Yield a problem for each table that the step streams, and whose truncation after a reset is still pending.

        Tables that steps of this run write are no problem: these steps truncate them when they start.
        """
        streamed = {read.table for read in self._steps[name].reads.values() if read.table and not read.static}
        for pipeline in self._bundle.pipelines.values():
            for writer in pipeline.steps.values():
                is_in_run = pipeline.name == self._pipeline and writer.name in self._steps
                if is_in_run or not streamed & tables_with_quarantine(writer, self._bundle.environment):
                    continue
                generation = open_checkpoint(self._bundle, pipeline.name, writer.name, self._spark).generation
                for table in streamed & generation.pending_tables.keys():
                    yield Problem(
                        self._bundle.where(self._pipeline, "steps", name),
                        f"step {name!r} streams from table {table!r}, which step {writer.name!r} will truncate when it "
                        "starts after its reset",
                        f"run that step first, or with this one: headrace run {pipeline.name}{self._option}",
                    )

    def _check_inputs(self, name: str) -> Iterator[Problem]:
        """Yield a problem for each change of a table with which Delta does not continue the step that streams it."""
        checkpoint, step = self.checkpoints[name], self._steps[name]
        record = checkpoint.read_record()
        if record is None or checkpoint.read().is_new:
            return
        schemas = recorded_schemas(step, record.inputs)
        changes = table_changes(self._spark, step, schemas, self._bundle.environment)
        where = self._bundle.where(self._pipeline, "steps", name, "reads")
        yield from refusals(name, changes, where, self.start_over(name))

    def _check_step(self, name: str) -> list[Problem]:
        bundle, checkpoint = self._bundle, self.checkpoints[name]
        writer = checkpoint.writer
        content = checkpoint.read()
        tables = {table: table_of(bundle.environment, table) for table in self._steps[name].tables_written}
        state = StepState(
            writer,
            bundle.where(writer.pipeline, "steps", name),
            checkpoint.spark_directory,
            checkpoint.generation,
            content,
            checkpoint.read_record(),
            {each: table_state(self._spark, table, content.query_id) for each, table in tables.items()},
            steps=frozenset((pipeline.name, step) for pipeline in bundle.pipelines.values() for step in pipeline.steps),
            environment_option=self._option,
        )
        # Only messages need the steps of other checkpoints, so these are read only if there is a problem.
        return check_pair(state) and check_pair(replace(state, queries=all_queries(self._bundle, self._spark)))
