"""`headrace reset`: start steps of a pipeline over with a new checkpoint."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from headrace.cli import shared_options
from headrace.cli.help_examples import examples

if TYPE_CHECKING:
    from headrace.config.models import Bundle
    from headrace.deploy.deployed_reset import DeployedPipeline
    from headrace.deploy.drain import Timeouts


def _check_position(ctx: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    from headrace.io.start_position import parse_position

    try:
        if text is not None:
            parse_position(text)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, parameter) from None
    return text


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
    callback=_check_position,
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
@shared_options.drain
@shared_options.within
@shared_options.break_lock
@shared_options.values
@shared_options.bundle_dir
@shared_options.output_format
def reset(
    pipeline: str,
    environment: str,
    steps: tuple[str, ...],
    downstream: bool,
    table: Literal["keep", "truncate"] | None,
    position: str | None,
    undo: bool,
    yes: bool,
    drain: float,
    within: float,
    break_lock: bool,
    values: dict[str, str],
    bundle_dir: Path,
    as_json: bool,
) -> None:
    """Start steps over.

    The next run of the steps reads with new checkpoints: everything that the sources still have, or only from the
    position --from. Shows what the reset changes, and asks for confirmation. Deletes nothing in a checkpoint. Tables
    are truncated when their step starts.

    --undo does not ask for confirmation.

    In an environment where the pipeline is deployed, a run of the deployed release executes the reset. The jobs of the
    pipeline are stopped first, and stay stopped until `headrace start`.
    """
    from headrace.config.load import find_root, load_bundle
    from headrace.deploy.deployed_reset import open_deployed_pipeline
    from headrace.deploy.drain import Timeouts

    if undo and (downstream or table or position):
        raise click.UsageError("--undo excludes --downstream, --table and --from")
    root = find_root(bundle_dir)
    deployed = open_deployed_pipeline(root, environment, pipeline)
    if deployed is not None:
        if as_json:
            raise click.UsageError("-o json is not supported where the pipeline is deployed: a run executes the reset")
        if values:
            raise click.UsageError("--value has no effect where the pipeline is deployed: the job has its own values")
        parameters = {
            "steps": ",".join(steps),
            "downstream": "true" if downstream else "",
            "table": table or "",
            "from": position or "",
            "undo": "true" if undo else "",
        }
        given = {name: value for name, value in parameters.items() if value}
        timeouts = Timeouts(drain=drain, start=within)
        _reset_deployed(deployed, given, yes=yes or undo, timeouts=timeouts, break_lock=break_lock)
        return
    bundle = load_bundle(root, environment, values)
    if undo:
        _undo(bundle, pipeline, steps, as_json=as_json)
    else:
        choices = {"downstream": downstream, "table": table, "position": position}
        _reset(bundle, pipeline, steps, choices, yes=yes, as_json=as_json)


def _reset(
    bundle: Bundle, pipeline: str, steps: Sequence[str], choices: dict[str, Any], *, yes: bool, as_json: bool
) -> None:
    """Reset steps with a session of this machine. `choices` are arguments of `plan_reset`."""
    from headrace.cli.confirmation import confirm_checkpoint_change
    from headrace.io.start_position import parse_position
    from headrace.runtime.reset import apply_reset, plan_reset
    from headrace.runtime.reset_text import format_resets, reset_to_json
    from headrace.spark import session

    position = parse_position(choices["position"]) if choices["position"] else None
    with session.bundle_session(bundle, name=f"reset {pipeline}") as spark:
        planned = plan_reset(spark, bundle, pipeline, steps, **{**choices, "position": position})
        if as_json:
            click.echo(json.dumps([reset_to_json(step_reset) for step_reset in planned], indent=2))
        else:
            click.echo(format_resets(planned))
        confirm_checkpoint_change(yes=yes)
        apply_reset(spark, bundle, planned)
    if as_json:
        return
    env = bundle.environment.option
    for name in dict.fromkeys(each.pipeline for each in planned):
        options = "".join(f" --step {each.step.name}" for each in planned if each.pipeline == name)
        click.echo(f"To start: headrace run {name}{env}")
        click.echo(f"To undo it before: headrace reset {name}{options} --undo{env}")


def _undo(bundle: Bundle, pipeline: str, steps: Sequence[str], *, as_json: bool) -> None:
    from headrace.runtime.reset import undo_reset
    from headrace.runtime.reset_text import format_undone
    from headrace.spark import session

    with session.bundle_session(bundle, name=f"reset {pipeline}") as spark:
        undone = undo_reset(spark, bundle, pipeline, steps)
    if as_json:
        generations = {f"{each.pipeline}/{each.step.name}": each.checkpoint.generation.previous for each in undone}
        click.echo(json.dumps(generations))
    else:
        click.echo(format_undone(undone))


def _reset_deployed(
    deployed: DeployedPipeline, parameters: dict[str, str], *, yes: bool, timeouts: Timeouts, break_lock: bool
) -> None:
    """Reset steps where they are deployed: plan the reset there, ask, stop the jobs, and execute it."""
    from headrace.cli.confirmation import confirm_change

    if not yes:
        click.echo(deployed.run_reset({**parameters, "dry-run": "true"}, timeouts, click.echo), nl=False)
    confirm_change(deployed.target, yes=yes)
    deployed.stop_jobs(timeouts, break_lock=break_lock, report=click.echo)
    click.echo(deployed.run_reset(parameters, timeouts, click.echo), nl=False)
    for key in deployed.jobs:
        click.echo(f"Start it with: headrace start {key} --env {deployed.target.name}")
