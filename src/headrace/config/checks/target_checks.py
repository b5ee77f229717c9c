"""The targets of databricks.yml against the environments of conf/: the same names, `local` apart."""

from __future__ import annotations

from headrace.config.checks.identity_checks import check_target_people
from headrace.config.databricks.databricks_yml import FILE, Resources
from headrace.config.environment_files import EnvironmentDraft
from headrace.config.locations import closest_match
from headrace.errors import Problem


def check_targets(resources: Resources, read: list[EnvironmentDraft], names: list[str]) -> list[Problem]:
    """The environments without a target, and the targets without an environment."""
    if not resources.written:
        return [
            Problem(
                draft.locations.where("engine"),
                f"environment '{draft.name}' has no target: no {FILE}",
                f"write {FILE}",
            )
            for draft in read
            if draft.environment is not None and draft.environment.engine.kind == "databricks"
        ]
    problems = list(check_target_people(resources.targets, resources.lines))
    defaults = [name for name, target in resources.targets.items() if target.default]
    for name in defaults[1:]:
        where = resources.lines.where("targets", name, "default")
        problems.append(Problem(where, f"target '{name}' is a default too", f"keep one: '{defaults[0]}' is one"))
    if resources.jobs and not resources.targets:
        job = next(iter(resources.jobs.values()))
        problems.append(Problem(job.where(), f"job '{job.key}' has no target", f"add one to {FILE}: targets: {{…}}"))
    for name in resources.targets:
        where = resources.lines.where("targets", name)
        if name == "local":
            problems.append(Problem(where, "'local' is this machine, not a target", "take it out"))
        elif name not in names:
            fix = closest_match(name, set(names) - set(resources.targets) - {"local"}, f"write conf/{name}.yml")
            problems.append(Problem(where, f"target '{name}' has no environment", fix))
    for name in names:
        if name != "local" and name not in resources.targets:
            where = resources.lines.where("targets")
            fix = f"add it to targets, or delete conf/{name}.yml"
            problems.append(Problem(where, f"environment '{name}' has no target", fix))
    return problems
