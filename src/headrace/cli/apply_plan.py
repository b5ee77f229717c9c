"""Options, output and confirmation of the commands that apply a plan."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from headrace.cli import confirmation, shared_options

if TYPE_CHECKING:
    from headrace.deploy.deploy_target import DeployTarget
    from headrace.deploy.plan import Plan
    from headrace.release.releases import Release

F = TypeVar("F", bound=Callable[..., Any])


def apply_options(function: F) -> F:
    """Add the options that are shared by all commands that apply a plan."""
    for option in (
        click.option(
            "--delete",
            "deletions",
            metavar="JOB",
            multiple=True,
            help="Allow the deletion of this job. Can be repeated.",
        ),
        click.option(
            "--any-identity",
            is_flag=True,
            help="Allow production jobs to run as a user instead of a service principal.",
        ),
        click.option(
            "--keep",
            metavar="N",
            type=click.IntRange(1),
            default=5,
            show_default=True,
            help="How many past releases to keep in the environment.",
        ),
        shared_options.adopt,
        shared_options.within,
        shared_options.idle,
        shared_options.watch,
        shared_options.drain,
        shared_options.break_lock,
        shared_options.yes,
    ):
        function = option(function)
    return function


def apply_plan(
    command: str,
    plan: Plan,
    release: Release,
    target: DeployTarget,
    option_values: Mapping[str, Any],
    *,
    promoted_from: str = "",
) -> None:
    """Print the plan, ask for confirmation, and apply the plan. If the plan is empty, do not ask and change nothing.

    `option_values` are the values of the options that `apply_options` adds, by the names of their parameters.
    `promoted_from` is the environment whose release is promoted, or "" for other commands than `promote`.
    """
    from headrace.deploy.apply import apply
    from headrace.deploy.deploy_lock import remove_abandoned_lock
    from headrace.deploy.deployment import ApplyOptions
    from headrace.deploy.drain import Timeouts
    from headrace.deploy.policy import require_allowed, require_supported_compute

    print_plan(plan)
    if plan.is_empty:
        remove_abandoned_lock(target)  # which a killed command may have left
        return
    if command != "rollback":  # the earlier release has run on its compute
        require_supported_compute(plan)
    deletions = confirmation.confirm_deletions(plan, option_values["deletions"])
    require_allowed(plan, release, target, deletable=deletions, any_identity=option_values["any_identity"])
    confirmation.confirm_change(target, yes=option_values["yes"])
    timeouts = Timeouts(
        drain=option_values["drain"],
        start=option_values["within"],
        idle=option_values["idle"],
        watch=option_values["watch"],
    )
    options = ApplyOptions(command, promoted_from, option_values["break_lock"], option_values["keep"], timeouts)
    try:
        state = apply(plan, release, target, options, click.echo)
    except KeyboardInterrupt:
        click.echo("Interrupted. Run the same command again to continue.", err=True)
        raise
    click.echo(f"{command}: environment {target.name} has release {state.release}")


def print_plan(plan: Plan, *, as_json: bool = False) -> None:
    """Print the plan as text, or as JSON if `as_json`."""
    from headrace.deploy.plan_text import render_plan

    if as_json:
        click.echo(json.dumps(plan.to_document(), indent=2, sort_keys=True))
        return
    for line in render_plan(plan):
        click.echo(line)
