"""Which release was there before."""

from __future__ import annotations

from headrace.deploy.place import Place
from headrace.deploy.state import State
from headrace.errors import DeploymentError


def earlier(state: State, place: Place, wanted: str | None = None) -> str:
    """The release to go back to: the one that is named, or the last that came to its end before the present one."""
    done = dict.fromkeys(one.release for one in reversed(state.history) if one.ended == "done")
    others = [release for release in done if release != state.release]
    found = [release for release in done if release.startswith(wanted)] if wanted else others[:1]
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
