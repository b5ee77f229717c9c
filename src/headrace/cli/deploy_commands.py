"""`headrace plan`, `deploy`, `promote`, `rollback`, `destroy`: what would change in an environment, and changing it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from headrace.cli import confirmation, shared_options

if TYPE_CHECKING:
    from headrace.deploy.apply import ApplyOptions
    from headrace.deploy.deploy_target import DeployTarget
    from headrace.deploy.plan import Plan
    from headrace.release.releases import Release

F = TypeVar("F", bound=Callable[..., Any])
CHANGES = 3  # the exit code that --exit-code asks for

release_option = click.option("--release", "wanted", metavar="ID", help="A built release; without it, the tree's own.")


def applying(function: F) -> F:
    """The options of all that changes an environment by a plan."""
    for option in (
        click.option("--delete", "deletes", metavar="JOB", multiple=True, help="A job that may be deleted."),
        click.option("--any-identity", is_flag=True, help="Let production jobs run as a person."),
        click.option("--keep", metavar="N", type=click.IntRange(1), default=5, show_default=True, help="Old releases."),
        shared_options.limits,
        shared_options.break_lock,
        shared_options.yes,
    ):
        function = option(function)
    return function


@click.command()
@shared_options.environment()
@release_option
@click.option(
    "--save", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write it, for deploy --plan."
)
@click.option("--exit-code", is_flag=True, help=f"Exit with {CHANGES} when something would change.")
@shared_options.allow_file
@shared_options.root
@shared_options.facts
def plan(
    environment: str,
    wanted: str | None,
    save: Path | None,
    exit_code: bool,
    allowed: tuple[str, ...],
    start: Path,
    as_json: bool,
) -> None:
    """Show what a deployment would change.

    Nothing is changed and nothing is uploaded. The tree's release is built when it is not yet.
    """
    from headrace.deploy import planner
    from headrace.deploy.state_store import StateStore

    release, place = _open(start, environment, wanted, allowed)
    made = planner.plan(release, place, StateStore(place).read())
    if save is not None:
        save.write_text(made.to_json())
    _show(made, as_json=as_json)
    if exit_code and not made.is_empty:
        sys.exit(CHANGES)


@click.command()
@shared_options.environment()
@release_option
@click.option(
    "--plan",
    "planned",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="That very plan.",
)
@shared_options.allow_file
@applying
@shared_options.root
def deploy(
    environment: str,
    wanted: str | None,
    planned: Path | None,
    allowed: tuple[str, ...],
    start: Path,
    **given: Any,
) -> None:
    """Deploy a release.

    It builds the tree's release when it is not yet, shows the plan, asks, and carries that very plan out. After a crash
    or Ctrl-C the same command goes on where it ended.
    """
    from headrace.deploy import planner
    from headrace.deploy.apply import require_current
    from headrace.deploy.plan import Plan
    from headrace.deploy.state_store import StateStore

    saved = Plan.load(planned) if planned else None
    if saved is not None:
        environment, wanted = saved.environment, saved.release
    release, place = _open(start, environment, wanted, allowed)
    made = planner.plan(release, place, StateStore(place).read())
    if saved is not None:
        require_current(saved, made)
    _carry_out(made, release, place, _order("deploy", given), given)


@click.command()
@click.option("--from", "source", metavar="NAME", required=True, help="The environment whose release is taken.")
@click.option("--to", "environment", metavar="NAME", required=True, help="The environment that it goes to.")
@click.option(
    "--gate",
    type=click.Choice(["success", "started", "none"]),
    default="success",
    show_default=True,
    help="What the release must have done where it is: run well, been running, or nothing.",
)
@applying
@shared_options.root
def promote(source: str, environment: str, gate: Any, start: Path, **given: Any) -> None:
    """Take the release that runs in one environment to another, byte for byte."""
    from headrace.config.load import find_root
    from headrace.deploy import planner, upload
    from headrace.deploy.deploy_target import open_target
    from headrace.deploy.gate import require_deployed, require_successful_runs
    from headrace.deploy.state_store import StateStore

    root = find_root(start)
    here, place = open_target(root, source), open_target(root, environment)
    state = StateStore(here).read()
    require_deployed(here, state)
    require_successful_runs(here, state, gate)
    release = upload.fetch_release(state.release, here, root, _say)
    made = planner.plan(release, place, StateStore(place).read())
    _carry_out(made, release, place, _order("promote", given, came_from=source), given)


@click.command()
@shared_options.environment()
@click.option("--to", "wanted", metavar="ID", help="The release; without it, the one before the present one.")
@applying
@shared_options.root
def rollback(environment: str, wanted: str | None, start: Path, **given: Any) -> None:
    """Go back to an earlier release.

    Checkpoints and tables stay as they are.
    """
    from headrace.config.load import find_root
    from headrace.deploy import planner, upload
    from headrace.deploy.deploy_target import open_target
    from headrace.deploy.release_history import choose_rollback_release
    from headrace.deploy.state_store import StateStore

    root = find_root(start)
    place = open_target(root, environment)
    state = StateStore(place).read()
    release = upload.fetch_release(choose_rollback_release(state, place, wanted), place, root, _say)
    _carry_out(planner.plan(release, place, state), release, place, _order("rollback", given), given)


@click.command()
@shared_options.environment()
@shared_options.limits
@shared_options.break_lock
@shared_options.yes
@shared_options.root
def destroy(environment: str, drain: float, within: float, break_lock: bool, yes: bool, start: Path) -> None:
    """Delete an environment's jobs and releases.

    Tables and checkpoints stay.
    """
    from headrace.config.load import find_root
    from headrace.deploy import deployed_jobs, planner
    from headrace.deploy.deploy_target import open_target
    from headrace.deploy.drain import Timeouts
    from headrace.deploy.state_store import StateStore

    place = open_target(find_root(start), environment)
    state = StateStore(place).read()
    click.echo(f"to be deleted from {place.remote.name}: {place.root}")
    for key in sorted(state.jobs.keys() | planner.find_jobs(place, state).keys()):
        click.echo(f"  - job {key}")
    confirmation.ask(place, yes=yes, always_typed=True)
    deployed_jobs.destroy(place, Timeouts(drain, within), break_lock=break_lock, report=_say)


# ── What they have in common ──────────────────────────────────────────────────────────────────────────


def _open(start: Path, environment: str, wanted: str | None, allowed: tuple[str, ...]) -> tuple[Release, DeployTarget]:
    from headrace.config.load import find_root
    from headrace.deploy.deploy_target import open_target
    from headrace.release import releases

    root = find_root(start)
    if wanted is None:
        return releases.current(root, allowed=allowed, confirm=confirmation.may_pack), open_target(root, environment)
    found = releases.find(root, wanted)
    releases.require_whole(found)
    return found, open_target(root, environment)


def _order(what: str, given: dict[str, Any], came_from: str = "") -> ApplyOptions:
    from headrace.deploy.apply import ApplyOptions
    from headrace.deploy.drain import Timeouts

    limits = Timeouts(given["drain"], given["within"])
    return ApplyOptions(what, came_from, given["break_lock"], given["keep"], limits)


def _carry_out(made: Plan, release: Release, place: DeployTarget, order: ApplyOptions, given: dict[str, Any]) -> None:
    from headrace.deploy.apply import apply
    from headrace.deploy.policy import require_allowed
    from headrace.deploy.state_store import StateStore

    _show(made)
    if made.is_empty:
        StateStore(place).remove_dead_lock()
        return
    deletes = confirmation.deletes(made, given["deletes"])
    require_allowed(made, release, place, deletes=deletes, any_identity=given["any_identity"])
    confirmation.ask(place, yes=given["yes"])
    try:
        state = apply(made, release, place, order, _say)
    except KeyboardInterrupt:
        click.echo("Interrupted: the same command goes on where this one ended.", err=True)
        raise
    click.echo(f"{order.command}: environment {place.name} has release {state.release}")


def _show(made: Plan, *, as_json: bool = False) -> None:
    from headrace.deploy.plan_text import render_plan

    if as_json:
        click.echo(json.dumps(made.to_document(), indent=2, sort_keys=True))
        return
    for line in render_plan(made):
        click.echo(line)


def _say(line: str) -> None:
    click.echo(line)
