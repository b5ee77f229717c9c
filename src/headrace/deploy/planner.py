"""Looks at what is there, and plans what a release would change."""

from __future__ import annotations

from dataclasses import replace

from headrace.deploy import upload
from headrace.deploy.deploy_state import Deployed, State
from headrace.deploy.deploy_target import Place
from headrace.deploy.desired_job import TAG, Wanted, wanted_jobs
from headrace.deploy.plan import Plan, There, make_plan
from headrace.deploy.remote import Found
from headrace.errors import DeploymentError
from headrace.release.releases import Release


def plan(release: Release, place: Place, state: State) -> Plan:
    """What the release would change in an environment."""
    upload.require_readable(release, place)
    wanted = {key: _with_identity(one, state.jobs.get(key), place) for key, one in wanted_jobs(release, place).items()}
    return make_plan(
        environment=place.name,
        host=place.remote.name,
        root=place.root,
        state=state,
        manifest=release.manifest,
        before=upload.manifest(state.release, place) if state.release != release.id else None,
        wanted=wanted,
        there={key: _there(job, release, place) for key, job in jobs(place, state, wanted).items()},
    )


def _with_identity(wanted: Wanted, before: Deployed | None, place: Place) -> Wanted:
    """A job that says no longer who it runs as would go on as before: a person stays, a service gives way to us."""
    was = before.body.get("run_as") if before else None
    if not was or "run_as" in wanted.body:
        return wanted
    who = was if "user_name" in was else {"user_name": place.user}
    return replace(wanted, body={**wanted.body, "run_as": who})


def jobs(place: Place, state: State, wanted: dict[str, Wanted] | None = None) -> dict[str, Found]:
    """The environment's jobs that are there: those of the state, and those that a deployment made and lost."""
    found = {}
    for key, deployed in state.jobs.items():
        job = place.remote.job(deployed.id)
        if job is not None:
            found[key] = _ours(job, key, place)
    names = {key: {str(one.body["name"])} for key, one in (wanted or {}).items() if key not in found}
    for key, name in state.intent.creates.items() if state.intent else ():
        if key not in found:
            names.setdefault(key, set()).add(name)
    for key, possible in names.items():
        made = _by_tag(key, possible, place)
        if made is not None:
            found[key] = made
    return found


def _ours(job: Found, key: str, place: Place) -> Found:
    """The job that the state names, unless it is another environment's, which has the same state."""
    if job.tag.split("/")[1:2] in ([], [place.name]):
        return job
    raise DeploymentError(
        f"job {job.id} is {job.tag!r}, and not of environment {place.name!r}: the two share a state",
        where=f"{place.remote.name}: {place.root}",
        fix="give each target a workspace.root_path of its own",
    )


def _by_tag(key: str, names: set[str], place: Place) -> Found | None:
    """A job of ours that the state does not know."""
    tag = place.tag(key)
    made = [job for name in sorted(names) for job in place.remote.jobs_named(name) if job.tag == tag]
    if not made:
        return None
    made.sort(key=lambda job: job.id)
    home = (made[0].settings.get("deployment") or {}).get("metadata_file_path", "")
    if home != f"{place.root}/state.json":
        raise DeploymentError(
            f"job {key!r} of environment {place.name!r} was deployed from elsewhere: its state is {home}",
            where=f"{place.remote.name}: job {made[0].id}, tag {TAG}={tag}",
            fix="give the target one workspace.root_path for all who deploy it",
        )
    return place.remote.job(made[0].id)


def _there(job: Found, release: Release, place: Place) -> There:
    going = place.remote.runs(job.id, active=True)
    return There(job, bool(going), any(not run.uses(release.id) for run in going))
