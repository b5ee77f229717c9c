"""What a reset changes, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.runtime.reset import StepReset


def format_resets(planned: Sequence[StepReset]) -> str:
    """Return what a reset changes, as text."""
    lines = []
    for reset in planned:
        old, new = reset.checkpoint.generation.number, reset.new_generation
        lines.append(f"{reset.pipeline}/{reset.step.name}: checkpoint generation {old} → {new}")
        for name, start in reset.starts.items():
            skipped = f"; skips {start.skipped}" if start.skipped else ""
            lines.append(f"  reads {_origin(reset, name)} {start.text}{skipped}")
        for table in reset.tables:
            lines.append(f"  table {table.name} (version {table.accepted.version}): {_action(reset, table.truncated)}")
        lines += [f"  {warning}" for warning in reset.warnings]
    return "\n".join(lines)


def format_undone(undone: Sequence[StepReset]) -> str:
    """Return as text which generations the steps of undone resets use again."""
    return "\n".join(
        f"{reset.pipeline}/{reset.step.name}: continues with checkpoint generation "
        f"{reset.checkpoint.generation.previous}"
        for reset in undone
    )


def reset_to_json(reset: StepReset) -> dict[str, Any]:
    """Return what a reset changes for one step, with the keys of the JSON output."""
    return {
        "pipeline": reset.pipeline,
        "step": reset.step.name,
        "generation": reset.checkpoint.generation.number,
        "new_generation": reset.new_generation,
        "reads": [
            {"input": name, "name": _origin(reset, name), "from": start.text, "skipped": start.skipped}
            for name, start in reset.starts.items()
        ],
        "tables": [
            {"table": table.name, "version": table.accepted.version, "truncated": table.truncated}
            for table in reset.tables
        ],
        "warnings": list(reset.warnings),
    }


def _origin(reset: StepReset, name: str) -> str:
    read = reset.step.reads[name]
    return f"source {read.source}" if read.source else f"table {read.table}"


def _action(reset: StepReset, truncated: bool) -> str:
    if truncated:
        return "truncated at the next start"
    has_new_rows_only = not any(start.repeats for start in reset.starts.values())
    return (
        "kept; new rows are added" if has_new_rows_only else "kept; rows with equal keys are replaced, other rows stay"
    )
