"""`headrace status`: how a pipeline's steps are doing, whether it runs or not."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from headrace.cli import options


@click.command()
@click.argument("pipeline")
@options.environment()
@options.values
@options.root
@options.facts
def status(pipeline: str, environment: str, values: dict[str, str], start: Path, as_json: bool) -> None:
    """Show how a pipeline's steps are doing.

    Reads what the runs have recorded; no Spark is started.
    """
    from headrace.config.load import find_root, load_bundle
    from headrace.graph import order
    from headrace.status import status_of

    bundle = load_bundle(find_root(start), environment, values)
    found = status_of(bundle.directory, pipeline, [step.name for step in order(bundle, pipeline)])
    if as_json:
        click.echo(json.dumps(asdict(found)))
        return
    click.echo(f"pipeline {pipeline}, environment {environment}: {found.run}")
    for step in found.steps:
        watermark = f", watermark {step.watermark}" if step.watermark else ""
        refused = "".join(f", {count} refused: {rule}" for rule, count in step.refused.items())
        behind = f", {step.behind} behind" if step.behind else ""
        click.echo(
            f"  {step.step}: {step.batches} batches, {step.rows} rows, last at {step.at or 'never'}"
            f"{behind}{watermark}, {step.state_rows} in state, {step.late} late, {step.duplicates} duplicates{refused}"
        )
