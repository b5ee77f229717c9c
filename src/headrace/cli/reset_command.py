"""`headrace reset`: start steps of a pipeline over with a new checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from headrace.cli import shared_options
from headrace.cli.help_examples import examples

if TYPE_CHECKING:
    from headrace.io.start_position import Position


def _parse_position(ctx: click.Context, parameter: click.Parameter, text: str | None) -> Position | None:
    from headrace.io.start_position import parse_position

    try:
        return None if text is None else parse_position(text)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, parameter) from None


@click.command(
    epilog=examples(
        "headrace reset orders --step gold_revenue",
        "headrace reset orders --step bronze_orders --downstream",
        "headrace reset orders --step gold_revenue --from checkpoint --table keep",
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
    "--from",
    "position",
    metavar="POSITION",
    callback=_parse_position,
    help="Where the steps start to read: beginning; checkpoint (where the previous checkpoint stopped); a time "
    '(2026-01-31T12:00); a version of a table (42); or offsets of topics (\'{"orders": {"0": 120, "1": 98}}\'). '
    "By default, where new checkpoints start. Truncated tables are read from the beginning.",
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
    position: Position | None,
    undo: bool,
    yes: bool,
    values: dict[str, str],
    bundle_dir: Path,
    as_json: bool,
) -> None:
    """Start steps over.

    The next run of the steps reads everything that their sources still have, or from the position --from, with new
    checkpoints. Shows what the reset changes, and asks for confirmation. Deletes nothing in a checkpoint. Tables are
    truncated when their step starts.

    --undo does not ask for confirmation.
    """
    from headrace.cli.confirmation import confirm_checkpoint_change
    from headrace.config.load import find_root, load_bundle
    from headrace.runtime.reset import apply_reset, plan_reset, undo_reset
    from headrace.runtime.reset_text import format_resets, reset_to_json
    from headrace.spark import session

    if undo and (downstream or table or position):
        raise click.UsageError("--undo excludes --downstream, --table and --from")
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
        planned = plan_reset(spark, bundle, pipeline, steps, downstream=downstream, table=table, position=position)
        if as_json:
            click.echo(json.dumps([reset_to_json(step_reset) for step_reset in planned], indent=2))
        else:
            click.echo(format_resets(planned))
        confirm_checkpoint_change(yes=yes)
        apply_reset(spark, bundle, planned)
    if not as_json:
        click.echo(f"Start them with: headrace run {pipeline}. Until then: headrace reset {pipeline} --undo")
