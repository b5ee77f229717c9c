"""What must be true before a release may go to an environment, whoever asks for it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from headrace.deploy.deploy_target import Place
from headrace.deploy.plan import Plan
from headrace.errors import DeploymentError, Problem
from headrace.release.releases import Release


def require_allowed(
    plan: Plan, release: Release, place: Place, *, deletes: Collection[str], any_identity: bool
) -> None:
    """Refuses what would be regretted, all of it at once."""
    problems = list(_of_production(plan, release, place, any_identity=any_identity))
    for job in plan.jobs:
        if job.takes_away and job.key not in deletes:
            message = f"job {job.key!r} is no longer in the release: it would be deleted"
            fix = f"if it is to go: --delete {job.key}; its tables and checkpoints stay"
            problems.append(Problem(f"{plan.host}: job {job.id}", message, fix))
    if problems:
        raise DeploymentError.of(problems)


def is_production(place: Place) -> bool:
    """Whether the target's mode is production."""
    return place.target.mode == "production"


def _of_production(plan: Plan, release: Release, place: Place, *, any_identity: bool) -> Iterator[Problem]:
    if not is_production(place):
        return
    if release.manifest.dirty:
        message = f"release {release.id} is of a tree with changes that are in no commit"
        yield Problem(str(release.directory), message, "commit, and build again; production knows where it came from")
    for job in plan.jobs:
        run_as = job.body.get("run_as") or {}
        if job.action != "delete" and not any_identity and "service_principal_name" not in run_as:
            who = run_as.get("user_name") or "whoever deploys it"
            yield Problem(
                f"databricks.yml: targets.{place.name}",
                f"job {job.key!r} would run as {who}, a person",
                "give the target run_as: {service_principal_name: …}, or pass --any-identity",
            )
