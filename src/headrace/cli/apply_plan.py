"""Apply a plan for a command: its options, its output and its confirmation."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

import click

from headrace.cli import confirmation, shared_options

if TYPE_CHECKING:
    from headrace.deploy.apply import Order
    from headrace.deploy.deploy_target import Place
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


def create_order(command: str, options: dict[str, Any], came_from: str = "") -> Order:
    """Return the order for `apply` from the values of `apply_options`."""
    from headrace.deploy.apply import Order
    from headrace.deploy.drain import Limits

    limits = Limits(options["drain"], options["within"])
    return Order(command, came_from, options["break_lock"], options["keep"], limits)


def apply_plan(plan: Plan, release: Release, target: Place, order: Order, options: dict[str, Any]) -> None:
    """Print the plan, ask for confirmation, and apply the plan."""
    from headrace.deploy.apply import apply
    from headrace.deploy.policy import require_allowed
    from headrace.deploy.state_store import Ledger

    print_plan(plan)
    if plan.is_empty:
        Ledger(target).clear()
        return
    deletions = confirmation.confirm_deletions(plan, options["deletions"])
    require_allowed(plan, release, target, deletes=deletions, any_identity=options["any_identity"])
    confirmation.confirm_change(target, yes=options["yes"])
    try:
        state = apply(plan, release, target, order, click.echo)
    except KeyboardInterrupt:
        click.echo("Interrupted. Run the same command again to continue.", err=True)
        raise
    click.echo(f"{order.what}: environment {target.name} has release {state.release}")


def print_plan(plan: Plan, *, as_json: bool = False) -> None:
    """Print the plan as text or as JSON."""
    from headrace.deploy.plan_text import in_words

    if as_json:
        click.echo(json.dumps(asdict(plan), indent=2, sort_keys=True))
        return
    for line in in_words(plan):
        click.echo(line)
