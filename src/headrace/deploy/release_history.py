"""Choose the release that a rollback deploys."""

from __future__ import annotations

from headrace.deploy.deploy_state import State
from headrace.deploy.deploy_target import DeployTarget
from headrace.errors import DeploymentError


def choose_rollback_release(state: State, target: DeployTarget, requested: str | None = None) -> str:
    """Return the deployed release whose id begins with `requested`; without `requested`, the previous release.

    Raise DeploymentError unless there is exactly one such release.
    """
    deployed = state.deployed_releases()
    others = [release for release in deployed if release != state.release]
    if requested:
        matches = [release for release in deployed if release.startswith(requested)]
        number = "several releases" if matches else "no release"
        problem = f"{number} whose id begins with {requested!r} in its history"
    else:
        matches = _previous_release(state)
        problem = "no release before the current one"
    if len(matches) == 1:
        return matches[0]
    raise DeploymentError(
        f"environment {target.name!r} has {problem}",
        where=f"{target.remote.name}: {target.root}",
        fix=f"earlier releases: {', '.join(others) or 'none'} (`headrace history --env {target.name}`)",
    )


def _previous_release(state: State) -> list[str]:
    """Return a list with the release before the current one, or an empty list if there is none.

    If a rollback is unfinished, return its release. If the last deployment is not a rollback and is unfinished or
    failed, return the last release that was deployed completely.
    """
    if state.intent is not None and state.intent.command == "rollback":
        return [state.intent.release]
    last_entry = state.history[-1] if state.history else None
    has_failed = last_entry is not None and last_entry.outcome != "done" and last_entry.command != "rollback"
    if state.release and (state.intent is not None or has_failed):
        return [state.release]
    stack: list[str] = []  # ends with the current release; a rollback returns to the release before it
    for entry in state.history:
        is_repetition = entry.release in stack[-1:]
        if entry.outcome != "done" or is_repetition:
            continue
        if entry.command == "rollback" and entry.release in stack:  # undoes all deployments after this release
            del stack[stack.index(entry.release) :]
        stack.append(entry.release)
    return stack[-2:-1]
