"""`headrace check`: every mistake that the files alone show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import options
from headrace.errors import ConfigurationError, HeadraceError, Problem

if TYPE_CHECKING:
    from headrace.config.load import Reading


@click.command
@options.environment(default=None)
@click.option("--deep", is_flag=True, help="Start Spark too, and ask all that a run would ask; writes nothing.")
@options.values
@options.root
@options.facts
def check(environment: str | None, deep: bool, values: dict[str, str], start: Path, as_json: bool) -> None:
    """Find every mistake in the bundle without running it."""
    from headrace.config.environments import environment_names
    from headrace.config.load import find_root, in_order, read_bundle
    from headrace.graph import examine

    root = find_root(start)
    names = [environment] if environment else environment_names(root)
    reading = read_bundle(root, names, values, lenient=environment is None)
    said = list(examine(root, reading.located_steps()))
    notes = [note for note in said if isinstance(note, str)]
    problems = in_order([*reading.problems, *(problem for problem in said if isinstance(problem, Problem))])
    if deep and not problems:
        problems = _deep(root, environment or "local", values)
    if as_json:
        facts = {"environments": names, "pipelines": [draft.name for draft in reading.drafts]}
        _print_json(ok=not problems, problems=[vars(problem) for problem in problems], notes=notes, **facts)
        raise SystemExit(1 if problems else 0)
    for note in notes:
        click.echo(f"Note: {note}")
    if problems:
        raise ConfigurationError.of(problems)
    click.echo(f"ok: {_summary(reading)}")


def _deep(root: Path, environment: str, values: dict[str, str]) -> list[Problem]:
    from headrace import runner, session
    from headrace.config.load import load_bundle

    bundle = load_bundle(root, environment, values)
    try:
        with session.opened(bundle, name="check") as spark:
            runner.check(spark, bundle)
    except HeadraceError as error:
        return list(error.problems)
    return []


def _summary(reading: Reading) -> str:
    counts = {
        "pipeline": len(reading.drafts),
        "step": sum(len(draft.steps) for draft in reading.drafts),
        "environment": len(reading.environments),
    }
    return ", ".join(f"{count} {noun}{'' if count == 1 else 's'}" for noun, count in counts.items())


def _print_json(**facts: object) -> None:
    import json

    click.echo(json.dumps(facts, indent=2))
