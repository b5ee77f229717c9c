"""Ask for confirmation before an environment, a job or a checkpoint is changed, or a credential is packed.

Each question can be answered by an option instead: --yes, --delete or --allow-file.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from headrace.deploy.deploy_target import DeployTarget
    from headrace.deploy.plan import Plan


def confirm_change(target: DeployTarget, *, yes: bool, name_required: bool = False) -> None:
    """Ask whether to change the environment; raise DeploymentError unless the user agrees or has passed --yes.

    In production, or with `name_required`, the user agrees by typing the name of the environment, otherwise with y.
    """
    from headrace.deploy.policy import is_production
    from headrace.errors import DeploymentError

    if yes:
        return
    if not _is_interactive():
        raise DeploymentError(
            "cannot ask for confirmation, as stdin is not a terminal: nothing was changed",
            fix="read the plan, then pass --yes",
        )
    if name_required or is_production(target):
        typed = click.prompt(f"Type the environment's name to continue ({target.name})", default="", show_default=False)
        if typed != target.name:
            raise DeploymentError(
                f"{typed!r} is not {target.name!r}: nothing was changed", fix=f"type {target.name}, or pass --yes"
            )
    elif not click.confirm("Continue?"):
        raise DeploymentError("nothing was changed", fix="run the command again and answer y, or pass --yes")


def confirm_checkpoint_change(*, yes: bool) -> None:
    """Ask whether to reset steps or adopt tables; raise GuardError unless the user agrees or has passed --yes."""
    from headrace.errors import GuardError

    if yes or (_is_interactive() and click.confirm("Continue?")):
        return
    if _is_interactive():
        fix = "run the command again and answer y, or pass --yes"
    else:
        fix = "read the changes above, then pass --yes"
    raise GuardError("nothing was changed", fix=fix)


def confirm_deletions(plan: Plan, allowed: Collection[str]) -> set[str]:
    """Return the keys of the jobs that may be deleted: those in `allowed`, and those that the user confirms.

    If stdin is not a terminal, the user is not asked. --yes does not confirm a deletion.
    """
    if not _is_interactive():
        return set(allowed)
    questions = {
        job.key: f"Delete job {job.key}? Its tables and checkpoints stay."
        for job in plan.jobs
        if job.deletes_existing_job and job.key not in allowed
    }
    return {*allowed, *(key for key, question in questions.items() if click.confirm(question))}


def confirm_credentials(credentials: Sequence[str]) -> bool:
    """Return whether the user agrees to pack these files; return False if stdin is not a terminal.

    --yes does not answer this question.
    """
    if not _is_interactive():
        return False
    click.echo("These files look like credentials:", err=True)
    for path in credentials:
        click.echo(f"  {path}", err=True)
    return click.confirm("Pack them into the release?", err=True)


def _is_interactive() -> bool:
    return sys.stdin.isatty()
