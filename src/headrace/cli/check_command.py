"""`headrace check`: every mistake that the files alone show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import shared_options
from headrace.errors import ConfigurationError, HeadraceError, Problem

if TYPE_CHECKING:
    from headrace.config.load import BundleDraft


@click.command
@shared_options.environment(default=None)
@click.option("--deep", is_flag=True, help="Start Spark too, and ask all that a run would ask; writes nothing.")
@shared_options.values
@shared_options.root
@shared_options.facts
def check(environment: str | None, deep: bool, values: dict[str, str], start: Path, as_json: bool) -> None:
    """Find every mistake in the bundle without running it."""
    from headrace.config.load import find_root
    from headrace.graph.static_checks import check_files

    root = find_root(start)
    found = check_files(root, environment, values)
    problems, notes = list(found.problems), list(found.unchecked)
    if deep and not problems:
        problems, warnings = _deep(root, environment or "local", values)
        notes += warnings
    if as_json:
        facts = {
            "environments": [draft.name for draft in found.bundle.environments],
            "pipelines": [draft.name for draft in found.bundle.drafts],
        }
        _print_json(ok=not problems, problems=[vars(problem) for problem in problems], notes=notes, **facts)
        raise SystemExit(1 if problems else 0)
    for note in notes:
        click.echo(f"Note: {note}")
    if problems:
        raise ConfigurationError.of(problems)
    click.echo(f"ok: {_summary(found.bundle)}")


def _deep(root: Path, environment: str, values: dict[str, str]) -> tuple[list[Problem], list[str]]:
    """Return the problems and the warnings that a session finds."""
    from headrace.config.load import load_bundle
    from headrace.runtime import runner
    from headrace.spark import session

    bundle = load_bundle(root, environment, values)
    try:
        with session.bundle_session(bundle, name="check") as spark:
            return [], runner.check_pipelines(spark, bundle)
    except HeadraceError as error:
        return list(error.problems), []


def _summary(reading: BundleDraft) -> str:
    counts = {
        "pipeline": len(reading.drafts),
        "step": sum(len(draft.steps) for draft in reading.drafts),
        "environment": len(reading.environments),
    }
    return ", ".join(f"{count} {noun}{'' if count == 1 else 's'}" for noun, count in counts.items())


def _print_json(**facts: object) -> None:
    import json

    click.echo(json.dumps(facts, indent=2))
