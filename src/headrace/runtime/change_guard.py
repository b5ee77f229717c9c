"""Find what has changed in a step since its checkpoint was written, and the problems that such changes cause."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.checkpoints.step_record import StepRecord
from headrace.config.locations import KeyLocations
from headrace.config.models import Environment, FileSource, KafkaSource, Step, local_path
from headrace.config.spark_options import is_true
from headrace.config.value_types import milliseconds
from headrace.errors import Problem
from headrace.signatures.changes import Change, StateCheck, Verdict, can_be_accepted, change, fix_of_refusal
from headrace.signatures.compare import compare
from headrace.signatures.signature import Signature
from headrace.signatures.state_check import check_state
from headrace.signatures.time_windows import duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NOT_COMPARED = "its query was not compared with the one that wrote its checkpoint"
# The key of a step to which a problem points, for the parts of a signature that have a key of their own.
KEYS = {"static_inputs": "reads", "watermarks": "reads", "sources": "reads", "sinks": "writes", "output_mode": "output"}
CHANGE_PATH = re.compile(r"(\w+)(?:\[(\d+)\])?(?:\.(\w+))?")  # of a change: a part, the number of an entry, a key


@dataclass(frozen=True)
class StepChanges:
    """The changes of a step since its checkpoint was written."""

    changes: tuple[Change, ...] = ()
    note: str = ""  # why the changes are not known, or only in part
    digest: str = ""  # of the old signature; empty if there is none
    is_accepted: bool = False  # the step's `accept` has this digest

    @property
    def refused(self) -> tuple[Change, ...]:
        """The changes with which the step must not start."""
        return () if self.is_accepted else tuple(each for each in self.changes if each.is_refused)

    @property
    def notes(self) -> list[str]:
        """The warnings for the step when it starts: the note, and the changes that are neither safe nor refused.

        A change of versions is reported even if it is safe, because other changes may not have been found.
        """
        reported = [
            each
            for each in self.changes
            if each not in self.refused and (each.verdict > Verdict.SAFE or each.path == "versions")
        ]
        prefix = "accepted: " if self.is_accepted else ""
        return [*([self.note] if self.note else []), *(prefix + each.sentence for each in reported)]


def find_changes(
    step: Step, environment: Environment, record: StepRecord, new: Signature | None, stream: DataFrame, checkpoint: str
) -> StepChanges:
    """Return what has changed in a step since its checkpoint was written.

    `record` is the record of the step's last start, `new` the signature of the step now (None if it could not be
    computed), `stream` the frame of its query, and `checkpoint` Spark's checkpoint directory. Unless both signatures
    are known and equal, Spark compares the query with the state in the checkpoint.
    """
    moved = tuple(_moved_sources(step, environment, record))
    old = _old_signature(record)
    if old is None or new is None:
        state = check_state(stream, step.output, checkpoint)
        return StepChanges((*moved, *_refusal(state)), NOT_COMPARED)
    is_accepted = old.digest in step.accept
    if old == new:
        return StepChanges(moved, digest=old.digest, is_accepted=is_accepted)
    state = check_state(stream, step.output, checkpoint)
    changes = (*moved, *compare(old, new, state_check=state))
    note = "" if state.is_accepted or state.is_refused else f"Spark has not compared its state: {state.reason}"
    has_state = bool(old.stateful or new.stateful)
    return StepChanges(changes, note if has_state else "", old.digest, is_accepted)


def change_problems(step: Step, found: StepChanges, keys: KeyLocations, start_over: str) -> list[Problem]:
    """Return the problems of a step that must not start because of its changes.

    `start_over` is the command that resets the step.
    """
    digest = found.digest if can_be_accepted(found.refused) else ""
    problems = []
    for each in found.refused:
        where = keys.where("steps", step.name, *_key_path(step, each))
        message = f"step {step.name!r} has changed since its checkpoint was written: {each.sentence}"
        # A reset keeps the rows of an upsert by default.
        keeps_wrong_rows = each.verdict is Verdict.WRONG_ROWS and any(sink.mode == "upsert" for sink in step.writes)
        command = f"{start_over} --table truncate" if keeps_wrong_rows else start_over
        problems.append(Problem(where, message, fix_of_refusal(each, digest, command)))
    return problems


def described_sources(step: Step, environment: Environment) -> dict[str, dict[str, str]]:
    """Return the kind and the location of each source that the step streams, by input."""
    described: dict[str, dict[str, str]] = {}
    for name, read in step.reads.items():
        source = environment.sources.get(str(read.source)) if read.source and not read.static else None
        if source is None:
            continue
        described[name] = {"kind": source.kind}
        # With `fileNameOnly`, Spark recognises a file by its name, so the files of a moved directory are not new.
        if isinstance(source, FileSource) and not is_true({**source.options, **read.options}, "fileNameOnly"):
            path = local_path(source.path)
            described[name]["path"] = os.path.normpath(path) if path else source.path.rstrip("/")
        elif isinstance(source, KafkaSource):
            described[name]["topics"] = source.pattern or ", ".join(sorted(source.topics))
    return described


def _moved_sources(step: Step, environment: Environment, record: StepRecord) -> Iterator[Change]:
    """Yield the sources that have another kind or location in the environment than when the step last started.

    A source that was not recorded then counts as unchanged.
    """
    verdicts = {
        "kind": (Verdict.NEEDS_NEW_GENERATION, "the checkpoint has the offsets of the old kind"),
        "path": (
            Verdict.NEEDS_NEW_GENERATION,
            "the checkpoint lists files of the old path, so all of the new one are new",
        ),
        "topics": (Verdict.SAFE_FOR_NEW_ROWS, "new topics are read from their earliest record, removed ones no more"),
    }
    for name, source in described_sources(step, environment).items():
        old = record.inputs.get(name, source)
        for key, (verdict, effect) in verdicts.items():
            if old.get(key, source.get(key)) != source.get(key, old.get(key)):
                yield change(f"sources.{name}.{key}", f"{key} of input {name}", old[key], source[key], verdict, effect)


def _old_signature(record: StepRecord) -> Signature | None:
    """Return the recorded signature; None if there is none, or if its format is unknown."""
    try:
        return Signature.from_json(record.signature) if record.signature else None
    except ValueError:
        return None


def _refusal(state: StateCheck) -> Iterator[Change]:
    """Yield a change if Spark refuses the state; without two signatures, its cause is unknown."""
    if state.is_refused:
        sentence = f"Spark refuses the checkpoint: {state.reason}"
        yield Change("checkpoint", "", "", Verdict.NEEDS_NEW_GENERATION, sentence)


def _key_path(step: Step, each: Change) -> tuple[str | int, ...]:
    """Return the key of the step under which a change was made, as far as the change shows it."""
    match = CHANGE_PATH.match(each.path)
    part, number, key = match.groups() if match else (each.path, None, None)
    if part == "sinks" and number and key:
        return "writes", int(number), key
    if part == "sources" and key and not number:
        return "reads", key  # the name of an input
    if part in KEYS or (key == "code" and step.transform):
        return (KEYS.get(part, "transform"),)
    return ("with", *_changed_setting(step, each)) if step.with_ else ("transform" if step.transform else "reads",)


def _changed_setting(step: Step, each: Change) -> tuple[str, ...]:
    """Return the setting of the transform that a change shows: the only one whose value is new in its texts.

    If there is none, return the setting with the name of the changed part, such as `keys`; an empty tuple if there is
    no such setting either.
    """
    values = {name: re.compile(rf"(?<!\w){re.escape(_as_text(value))}(?!\w)") for name, value in step.with_.items()}
    found = [name for name, value in values.items() if value.search(each.new) and not value.search(each.old)]
    part = each.path.rpartition(".")[2]
    return (found[0],) if len(found) == 1 else (part,) if part in step.with_ else ()


def _as_text(value: Any) -> str:
    """Return the value of a setting as a change shows it: a list without brackets, a duration in its largest unit."""
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    with suppress(ValueError):
        text = duration(1000 * milliseconds(text))
    return text
