"""Move the checkpoints of a renamed step or pipeline to their new directories."""

from __future__ import annotations

from headrace.checkpoints.checkpoint_files import CheckpointFiles
from headrace.checkpoints.lock import require_unlocked
from headrace.errors import ConfigurationError, GuardError


def rename_checkpoints(files: CheckpointFiles, old: str, new: str) -> None:
    """Move the checkpoints of `old` to `new`: both are pipelines, or both are steps, as pipeline/step.

    `files` is the directory of all checkpoints. Raise ConfigurationError if the names are not of the same kind, or if
    `old` has no checkpoint; raise GuardError if `new` has one, or if a step is running.
    """
    if old.count("/") != new.count("/") or old.count("/") > 1:
        raise ConfigurationError(
            f"{old} and {new} are not both pipelines or both steps", fix="name both as PIPELINE, or as PIPELINE/STEP"
        )
    if not files.sizes(old):
        pipelines = [pipeline for pipeline in sorted(files.sizes()) if _steps(files, pipeline)]
        steps = [f"{pipeline}/{step}" for pipeline in pipelines for step in _steps(files, pipeline)]
        known = steps if "/" in old else pipelines
        raise ConfigurationError(
            f"{old} has no checkpoint", where=files.directory, fix=f"choose one of: {', '.join(known) or 'none'}"
        )
    moved = {old: new} if "/" in old else {f"{old}/{step}": f"{new}/{step}" for step in _steps(files, old)}
    for target in moved.values():
        has_generation = any(entry.isdigit() for entry in files.sizes(target))
        if has_generation:
            raise GuardError(
                f"{target} already has a checkpoint",
                where=f"{files.directory}/{target}",
                fix="if that checkpoint is not needed, move its directory away, then rename again",
            )
    for source in moved:
        require_unlocked(f"{files.directory}/{source}", source)
    for source, target in moved.items():
        files.delete(target)  # a refused start of the renamed step may have left its lock file there
        files.move(source, target)


def _steps(files: CheckpointFiles, pipeline: str) -> list[str]:
    """Return the steps of a pipeline that have a checkpoint, or at least a lock file."""
    return [step for step in sorted(files.sizes(pipeline)) if files.sizes(f"{pipeline}/{step}")]
