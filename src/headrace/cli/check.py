"""`headrace check`: every mistake that the files alone show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import options

if TYPE_CHECKING:
    from headrace.config.models import Bundle


@click.command
@options.environment(default=None)
@options.values
@options.root
@options.facts
def check(environment: str | None, values: dict[str, str], start: Path, as_json: bool) -> None:
    """Find every mistake in the bundle without running it."""
    from headrace.errors import ConfigurationError

    try:
        bundles, notes = _examine(start, environment, values)
    except ConfigurationError as error:
        if not as_json:
            raise
        _print_json(ok=False, problems=[vars(problem) for problem in error.problems])
        raise SystemExit(1) from None
    if as_json:
        names = [bundle.environment.name for bundle in bundles]
        _print_json(ok=True, problems=[], notes=notes, environments=names, pipelines=list(bundles[0].pipelines))
        return
    for note in notes:
        click.echo(f"Note: {note}")
    click.echo(f"ok: {_summary(bundles)}")


def _examine(start: Path, environment: str | None, values: dict[str, str]) -> tuple[tuple[Bundle, ...], list[str]]:
    from headrace.config.load import find_root, in_order, load_all, load_bundle
    from headrace.errors import ConfigurationError
    from headrace.graph import check_transforms, unchecked

    root = find_root(start)
    bundles = (load_bundle(root, environment, values),) if environment else load_all(root, values)
    # Pipelines are the same in every environment: one bundle stands for all.
    problems = check_transforms(bundles[0])
    if problems:
        raise ConfigurationError.of(in_order(problems))
    return bundles, unchecked(bundles[0])


def _summary(bundles: tuple[Bundle, ...]) -> str:
    pipelines = bundles[0].pipelines.values()
    counts = {
        "pipeline": len(pipelines),
        "step": sum(len(pipeline.steps) for pipeline in pipelines),
        "environment": len(bundles),
    }
    return ", ".join(f"{count} {noun}{'' if count == 1 else 's'}" for noun, count in counts.items())


def _print_json(**facts: object) -> None:
    import json

    click.echo(json.dumps(facts, indent=2))
