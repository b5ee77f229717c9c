"""Which release was there before."""

from __future__ import annotations

from headrace.deploy.deploy_state import State
from headrace.deploy.deploy_target import Place
from headrace.errors import DeploymentError


def earlier(state: State, place: Place, wanted: str | None = None) -> str:
    """The release to go back to: the one that is named, or the last one before the present one."""
    done = dict.fromkeys(one.release for one in reversed(state.history) if one.ended == "done")
    others = [release for release in done if release != state.release]
    found = [release for release in done if release.startswith(wanted)] if wanted else _last_before(state)
    if len(found) == 1:
        return found[0]
    what = f"no release {wanted!r} in its history" if wanted else "no release before the present one"
    if len(found) > 1:
        what = f"more than one release that begins with {wanted!r}"
    raise DeploymentError(
        f"environment {place.name!r} has {what}",
        where=f"{place.remote.name}: {place.root}",
        fix=f"known: {', '.join(others) or 'none'} (`headrace history --env {place.name}`)",
    )


def _last_before(state: State) -> list[str]:
    """The one that a rollback has begun with; the last good one, if another has begun or failed; else the one below."""
    if state.intent is not None and state.intent.what == "rollback":
        return [state.intent.release]
    last = state.history[-1] if state.history else None
    has_failed = last is not None and last.ended != "done" and last.what != "rollback"
    if state.release and (state.intent is not None or has_failed):
        return [state.release]
    stack: list[str] = []
    for entry in state.history:
        if entry.ended != "done" or entry.release in stack[-1:]:
            continue
        if entry.what == "rollback" and entry.release in stack:
            del stack[stack.index(entry.release) :]
        stack.append(entry.release)
    return stack[-2:-1]
