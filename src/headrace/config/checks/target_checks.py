"""Check that every environment except `local` has a target of the same name in databricks.yml, and vice versa."""

from __future__ import annotations

from headrace.config.checks.identity_checks import check_target_identities
from headrace.config.databricks.bundle_grammar import BUNDLE_FILE
from headrace.config.databricks.databricks_yml import Resources
from headrace.config.environment_files import EnvironmentDraft
from headrace.config.locations import closest_name, fix_for_unknown_name
from headrace.errors import Problem


def check_targets(resources: Resources, loaded: list[EnvironmentDraft], names: list[str]) -> list[Problem]:
    """Return the problems of targets, environments without a target, and targets without an environment.

    `loaded` are the environments that were loaded, `names` the names of all environments. Without databricks.yml, only
    environments with the engine databricks need a target.
    """
    if not resources.exists:
        return [
            Problem(
                draft.locations.where("engine"),
                f"environment '{draft.name}' has no target: the bundle has no {BUNDLE_FILE}",
                f"write {BUNDLE_FILE}",
            )
            for draft in loaded
            if draft.environment is not None and draft.environment.engine.kind == "databricks"
        ]
    if not resources.has_valid_targets:  # invalid targets have been reported
        return []
    problems = list(check_target_identities(resources.targets, resources.locations))
    defaults = [name for name, target in resources.targets.items() if target.default]
    for name in defaults[1:]:
        where = resources.locations.where("targets", name, "default")
        message = f"target '{name}' is a second default target"
        problems.append(Problem(where, message, f"keep one default; target '{defaults[0]}' is a default too"))
    if resources.jobs and not resources.targets:
        job = next(iter(resources.jobs.values()))
        problems.append(
            Problem(job.where(), f"job '{job.key}' has no target", f"add one to {BUNDLE_FILE}: targets: {{…}}")
        )
    return problems + _check_environments(resources, names)


def _check_environments(resources: Resources, names: list[str]) -> list[Problem]:
    """Return the environments without a target and the targets without an environment. `names` are all environments."""
    problems = []
    without_target = set(names) - set(resources.targets) - {"local"}
    # For a target without an environment, the fix suggests the environment with the most similar name. That environment
    # is not reported as lacking a target.
    suggested = {closest_name(name, without_target) for name in resources.targets if name not in names}
    for name in resources.targets:
        where = resources.locations.where("targets", name)
        if name == "local":
            problems.append(Problem(where, "'local' is this machine and cannot be a target", "remove it"))
        elif name not in names:
            fix = fix_for_unknown_name(name, without_target, f"write conf/{name}.yml")
            problems.append(Problem(where, f"target '{name}' has no environment", fix))
    for name in names:
        if name != "local" and name not in resources.targets and name not in suggested:
            where = resources.locations.where("targets")
            fix = f"add it to targets, or delete conf/{name}.yml"
            problems.append(Problem(where, f"environment '{name}' has no target", fix))
    return problems
