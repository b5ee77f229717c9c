"""Choose the release that a rollback deploys."""

from __future__ import annotations

from headrace.deploy.deploy_state import State
from headrace.deploy.deploy_target import DeployTarget
from headrace.errors import DeploymentError


def choose_rollback_release(state: State, target: DeployTarget, requested: str | None = None) -> str:
    """Return the release whose id begins with `requested`, by default the one before the current release."""
    deployed = dict.fromkeys(entry.release for entry in reversed(state.history) if entry.outcome == "done")
    others = [release for release in deployed if release != state.release]
    matches = [release for release in deployed if release.startswith(requested)] if requested else _previous(state)
    if len(matches) == 1:
        return matches[0]
    problem = f"no release {requested!r} in its history" if requested else "no release before the current one"
    if len(matches) > 1:
        problem = f"several releases whose id begins with {requested!r}"
    raise DeploymentError(
        f"environment {target.name!r} has {problem}",
        where=f"{target.remote.name}: {target.root}",
        fix=f"earlier releases: {', '.join(others) or 'none'} (`headrace history --env {target.name}`)",
    )


def _previous(state: State) -> list[str]:
    """Return the release before the current one in a list, or an empty list.

    If a rollback is unfinished, return its release. If another deployment is unfinished or failed, return the last
    release that was deployed completely.
    """
    if state.intent is not None and state.intent.command == "rollback":
        return [state.intent.release]
    last = state.history[-1] if state.history else None
    has_failed = last is not None and last.outcome != "done" and last.command != "rollback"
    if state.release and (state.intent is not None or has_failed):
        return [state.release]
    stack: list[str] = []
    for entry in state.history:
        if entry.outcome != "done" or entry.release in stack[-1:]:
            continue
        if entry.command == "rollback" and entry.release in stack:
            del stack[stack.index(entry.release) :]
        stack.append(entry.release)
    return stack[-2:-1]
