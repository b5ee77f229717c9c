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
@click.option("--step", "steps", metavar="NAME", multiple=True, help="Reset only this step. Can be repeated.")
@click.option("--downstream", is_flag=True, help="Also reset all steps that stream from the tables of these steps.")
@click.option(
    "--table",
    type=click.Choice(["keep", "truncate"]),
    help="What happens to the rows of the tables; by default those of upserts are kept, others are truncated.",
)
@click.option("--undo", is_flag=True, help="Return to the previous checkpoints, until a new one has completed a batch.")
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

    The next run of the steps reads everything that their sources still have, with a new checkpoint. Shows what that
    changes, and asks. Deletes nothing in a checkpoint; tables are truncated when the step starts.
    """
    from headrace.cli.confirmation import confirm_reset
    from headrace.config.load import find_root, load_bundle
    from headrace.runtime import reset as resets
    from headrace.spark import session

    if undo and (downstream or table):
        raise click.UsageError("--undo excludes --downstream and --table")
    bundle = load_bundle(find_root(bundle_dir), environment, values)
    with session.bundle_session(bundle, name=f"reset {pipeline}") as spark:
        if undo:
            for undone in resets.undo_reset(spark, bundle, pipeline, steps):
                number = undone.checkpoint.generation.previous
                click.echo(f"{undone.pipeline}/{undone.step.name}: continues with checkpoint generation {number}")
            return
        planned = resets.plan_reset(spark, bundle, pipeline, steps, downstream=downstream, table=table)
        if as_json:
            click.echo(json.dumps([_as_dict(each) for each in planned], indent=2))
        else:
            click.echo(format_resets(planned))
        confirm_reset(yes=yes)
        resets.apply_reset(spark, bundle, planned)
    if not as_json:
        click.echo(f"Start them with: headrace run {pipeline}. Until then: headrace reset {pipeline} --undo")


def format_resets(resets: Sequence[StepReset]) -> str:
    """Return what a reset changes, as text."""
    lines = []
    for reset in resets:
        old, new = reset.checkpoint.generation.number, reset.new_generation
        lines.append(f"{reset.pipeline}/{reset.step.name}: checkpoint generation {old} → {new}")
        lines.append(f"  reads again: {', '.join(_inputs(reset.step))}")
        for table in reset.tables:
            action = "truncated at the next start" if table.truncated else "kept; equal keys are updated"
            lines.append(f"  table {table.name} (version {table.accepted.version}): {action}")
        lines += [f"  {warning}" for warning in reset.warnings]
    return "\n".join(lines)


def _inputs(step: Step) -> list[str]:
    return [
        f"source {read.source}" if read.source else f"table {read.table}"
        for read in step.reads.values()
        if not read.static
    ]


def _as_dict(reset: StepReset) -> dict[str, object]:
    return {
        "pipeline": reset.pipeline,
        "step": reset.step.name,
        "generation": reset.checkpoint.generation.number,
        "new_generation": reset.new_generation,
        "reads": _inputs(reset.step),
        "tables": [
            {"table": table.name, "version": table.accepted.version, "truncated": table.truncated}
            for table in reset.tables
        ],
        "warnings": list(reset.warnings),
    }
