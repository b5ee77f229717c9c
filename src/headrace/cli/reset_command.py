"""`headrace reset`: start steps of a pipeline over with a new checkpoint."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from headrace.cli import shared_options
from headrace.cli.help_examples import examples

if TYPE_CHECKING:
    from headrace.config.models import Step
    from headrace.runtime.reset import StepReset


@click.command(
    epilog=examples(
        "headrace reset orders --step gold_revenue",
        "headrace reset orders --step bronze_orders --downstream",
        "headrace reset orders --step gold_revenue --undo",
    )
)
@click.argument("pipeline")
@shared_options.environment()
@click.option(
    "--step",
    "steps",
    metavar="NAME",
    multiple=True,
    help="Reset only this step, not all steps of the pipeline. Can be repeated.",
)
@click.option(
    "--downstream",
    is_flag=True,
    help="Also reset all steps that stream from the tables of the reset steps, directly or through other steps.",
)
@click.option(
    "--table",
    type=click.Choice(["keep", "truncate"]),
    help="What happens to the rows of the tables. By default, tables of upserts are kept and others are truncated. "
    "Quarantine tables are always truncated.",
)
@click.option(
    "--undo",
    is_flag=True,
    help="Return to the previous checkpoints. Fails after a step has completed a batch with its new checkpoint.",
)
@shared_options.yes
@shared_options.values
@shared_options.bundle_dir
@shared_options.output_format
def reset(
    pipeline: str,
    environment: str,
    steps: tuple[str, ...],
    downstream: bool,
    table: Literal["keep", "truncate"] | None,
    undo: bool,
    yes: bool,
    values: dict[str, str],
    bundle_dir: Path,
    as_json: bool,
) -> None:
    """Start steps over.

    The next run of the steps reads everything that their sources still have, with new checkpoints. Shows what the reset
    changes, and asks for confirmation. Deletes nothing in a checkpoint. Tables are truncated when their step starts.

    --undo does not ask for confirmation.
    """
    from headrace.cli.confirmation import confirm_checkpoint_change
    from headrace.config.load import find_root, load_bundle
    from headrace.runtime.reset import apply_reset, plan_reset, undo_reset
    from headrace.spark import session

    if undo and (downstream or table):
        raise click.UsageError("--undo excludes --downstream and --table")
    bundle = load_bundle(find_root(bundle_dir), environment, values)
    with session.bundle_session(bundle, name=f"reset {pipeline}") as spark:
        if undo:
            generations = {
                f"{undone.pipeline}/{undone.step.name}": undone.checkpoint.generation.previous
                for undone in undo_reset(spark, bundle, pipeline, steps)
            }
            lines = [f"{step}: continues with checkpoint generation {number}" for step, number in generations.items()]
            click.echo(json.dumps(generations) if as_json else "\n".join(lines))
            return
        planned = plan_reset(spark, bundle, pipeline, steps, downstream=downstream, table=table)
        if as_json:
            click.echo(json.dumps([_as_dict(step_reset) for step_reset in planned], indent=2))
        else:
            click.echo(format_resets(planned))
        confirm_checkpoint_change(yes=yes)
        apply_reset(spark, bundle, planned)
    if not as_json:
        click.echo(f"Start them with: headrace run {pipeline}. Until then: headrace reset {pipeline} --undo")


def format_resets(planned: Sequence[StepReset]) -> str:
    """Return what a reset changes, as text."""
    lines = []
    for step_reset in planned:
        old, new = step_reset.checkpoint.generation.number, step_reset.new_generation
        lines.append(f"{step_reset.pipeline}/{step_reset.step.name}: checkpoint generation {old} → {new}")
        lines.append(f"  reads again: {', '.join(_streaming_inputs(step_reset.step))}")
        for table in step_reset.tables:
            action = "truncated at the next start" if table.truncated else "kept; equal keys are updated"
            lines.append(f"  table {table.name} (version {table.accepted.version}): {action}")
        lines += [f"  {warning}" for warning in step_reset.warnings]
    return "\n".join(lines)


def _streaming_inputs(step: Step) -> list[str]:
    """Return the inputs that a reset step reads again, as text. Each batch reads static inputs again anyway."""
    return [
        f"source {read.source}" if read.source else f"table {read.table}"
        for read in step.reads.values()
        if not read.static
    ]


def _as_dict(step_reset: StepReset) -> dict[str, object]:
    return {
        "pipeline": step_reset.pipeline,
        "step": step_reset.step.name,
        "generation": step_reset.checkpoint.generation.number,
        "new_generation": step_reset.new_generation,
        "reads": _streaming_inputs(step_reset.step),
        "tables": [
            {"table": table.name, "version": table.accepted.version, "truncated": table.truncated}
            for table in step_reset.tables
        ],
        "warnings": list(step_reset.warnings),
    }
