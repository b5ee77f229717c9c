"""Asks the user before an environment is changed or a credential is packed; options answer without a terminal."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from headrace.deploy.deploy_target import DeployTarget
    from headrace.deploy.plan import Plan


def ask(place: DeployTarget, *, yes: bool, always_typed: bool = False) -> None:
    """Lets the user answer; where nobody can, --yes is the answer."""
    from headrace.deploy.policy import is_production
    from headrace.errors import DeploymentError

    if yes:
        return
    if not _is_somebody_there():
        raise DeploymentError("nobody is there to answer: nothing was changed", fix="look at the plan, then pass --yes")
    if always_typed or is_production(place):
        typed = click.prompt(f"Type the environment's name to go on ({place.name})", default="", show_default=False)
        if typed != place.name:
            raise DeploymentError(
                f"{typed!r} is not {place.name!r}: nothing was changed", fix="type it as it is written"
            )
    elif not click.confirm("Go on?"):
        raise DeploymentError("nothing was changed", fix="run it again and answer y, or pass --yes")


def deletes(made: Plan, named: Collection[str]) -> set[str]:
    """The jobs that the user lets go: those that are named, and those agreed to when asked; --yes is no answer."""
    others = [job.key for job in made.jobs if job.deletes_existing_job and job.key not in named]
    asked = others if _is_somebody_there() else []
    return {*named, *(key for key in asked if click.confirm(f"Delete job {key}? Its tables and checkpoints stay."))}


def may_pack(credentials: Sequence[str]) -> bool:
    """Ask whether a release may pack these files; without a terminal it may not, and --yes is no answer."""
    if not _is_somebody_there():
        return False
    click.echo("These files look like credentials:", err=True)
    for path in credentials:
        click.echo(f"  {path}", err=True)
    return click.confirm("Pack them into the release?", err=True)


def _is_somebody_there() -> bool:
    return sys.stdin.isatty()
