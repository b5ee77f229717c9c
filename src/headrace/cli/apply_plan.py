"""Apply a plan for a command: its options, its output and its confirmation."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from headrace.cli import confirmation, shared_options

if TYPE_CHECKING:
    from headrace.deploy.apply import ApplyOptions
    from headrace.deploy.deploy_target import DeployTarget
    from headrace.deploy.plan import Plan
    from headrace.release.releases import Release

F = TypeVar("F", bound=Callable[..., Any])


def apply_options(function: F) -> F:
    """Add the options of all commands that apply a plan."""
    for option in (
        click.option(
            "--delete",
            "deletions",
            metavar="JOB",
            multiple=True,
            help="Allow the deletion of this job. Can be repeated.",
        ),
        click.option("--any-identity", is_flag=True, help="Let production jobs run as a person."),
        click.option(
            "--keep",
            metavar="N",
            type=click.IntRange(1),
            default=5,
            show_default=True,
            help="How many past releases to keep in the environment.",
        ),
        shared_options.within,
        shared_options.drain,
        shared_options.break_lock,
        shared_options.yes,
    ):
        function = option(function)
    return function


def create_order(command: str, options: dict[str, Any], promoted_from: str = "") -> ApplyOptions:
    """Return the order for `apply` from the values of `apply_options`."""
    from headrace.deploy.apply import ApplyOptions
    from headrace.deploy.drain import Timeouts

    limits = Timeouts(options["drain"], options["within"])
    return ApplyOptions(command, promoted_from, options["break_lock"], options["keep"], limits)


def apply_plan(
    plan: Plan, release: Release, target: DeployTarget, order: ApplyOptions, options: dict[str, Any]
) -> None:
    """Print the plan, ask for confirmation, and apply the plan."""
    from headrace.deploy.apply import apply
    from headrace.deploy.policy import require_allowed
    from headrace.deploy.state_store import StateStore

    print_plan(plan)
    if plan.is_empty:
        StateStore(target).remove_dead_lock()
        return
    deletions = confirmation.confirm_deletions(plan, options["deletions"])
    require_allowed(plan, release, target, deletes=deletions, any_identity=options["any_identity"])
    confirmation.confirm_change(target, yes=options["yes"])
    try:
        state = apply(plan, release, target, order, click.echo)
    except KeyboardInterrupt:
        click.echo("Interrupted. Run the same command again to continue.", err=True)
        raise
    click.echo(f"{order.command}: environment {target.name} has release {state.release}")


def print_plan(plan: Plan, *, as_json: bool = False) -> None:
    """Print the plan as text or as JSON."""
    from headrace.deploy.plan_text import render_plan

    if as_json:
        click.echo(json.dumps(plan.to_document(), indent=2, sort_keys=True))
        return
    for line in render_plan(plan):
        click.echo(line)
