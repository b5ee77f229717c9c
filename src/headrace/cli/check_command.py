"""`headrace check`: find every mistake in the bundle without running it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import shared_options
from headrace.cli.help_examples import examples
from headrace.errors import ConfigurationError, HeadraceError, Problem

if TYPE_CHECKING:
    from headrace.config.load import BundleDraft


@click.command(epilog=examples("headrace check", "headrace check --deep --env local"))
@shared_options.environment(default=None)
@click.option(
    "--deep",
    is_flag=True,
    help="Also start Spark, and check everything that a run in the environment (by default local) checks before its "
    "first batch. Writes nothing.",
)
@shared_options.values
@shared_options.bundle_dir
@shared_options.output_format
def check(environment: str | None, deep: bool, values: dict[str, str], bundle_dir: Path, as_json: bool) -> None:
    """Find every mistake in the bundle without running it."""
    from headrace.config.load import find_root
    from headrace.graph.static_checks import check_files

    root = find_root(bundle_dir)
    result = check_files(root, environment, values)
    problems, notes = list(result.problems), list(result.unchecked)  # notes do not make the check fail
    if deep and not problems:
        problems, warnings = _check_with_spark(root, environment or "local", values)
        notes += warnings
    if as_json:
        facts = {
            "environments": [draft.name for draft in result.bundle.environments],
            "pipelines": [draft.name for draft in result.bundle.pipelines],
        }
        _print_json(ok=not problems, problems=[vars(problem) for problem in problems], notes=notes, **facts)
        raise SystemExit(1 if problems else 0)
    for note in notes:
        click.echo(f"Note: {note}")
    if problems:
        raise ConfigurationError.of(problems)
    click.echo(f"ok: {_summary(result.bundle)}")


def _check_with_spark(root: Path, environment: str, values: dict[str, str]) -> tuple[list[Problem], list[str]]:
    """Start Spark and check all pipelines of the bundle. Return the problems and the warnings, which are not errors."""
    from headrace.config.load import load_bundle
    from headrace.runtime import runner
    from headrace.spark import session

    bundle = load_bundle(root, environment, values)
    try:
        with session.bundle_session(bundle, name="check") as spark:
            return [], runner.check_pipelines(spark, bundle)
    except HeadraceError as error:
        return list(error.problems), []


def _summary(bundle: BundleDraft) -> str:
    counts = {
        "pipeline": len(bundle.pipelines),
        "step": sum(len(draft.steps) for draft in bundle.pipelines),
        "environment": len(bundle.environments),
    }
    return ", ".join(f"{count} {noun}{'' if count == 1 else 's'}" for noun, count in counts.items())


def _print_json(**facts: object) -> None:
    import json

    click.echo(json.dumps(facts, indent=2))
