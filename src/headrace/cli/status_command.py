"""`headrace status`: how a pipeline's steps are doing, whether it runs or not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import shared_options

if TYPE_CHECKING:
    from headrace.runtime.run_status import StepStatus


@click.command()
@click.argument("pipeline")
@shared_options.environment()
@shared_options.values
@shared_options.root
@shared_options.facts
def status(pipeline: str, environment: str, values: dict[str, str], start: Path, as_json: bool) -> None:
    """Show how a pipeline's steps are doing.

    Reads what the runs have recorded; no Spark is started.
    """
    from headrace.config.load import find_root, load_bundle
    from headrace.graph.order import pipeline_steps
    from headrace.runtime.run_status import status_of

    bundle = load_bundle(find_root(start), environment, values)
    found = status_of(bundle.directory, pipeline, [step.name for step in pipeline_steps(bundle, pipeline)])
    if as_json:
        click.echo(json.dumps(asdict(found)))
        return
    click.echo(f"pipeline {pipeline}, environment {environment}: {found.run}")
    if found.since:
        click.echo(f"  counted since {found.since}")
    for step in found.steps:
        click.echo(f"  {step.step}: {', '.join(_told(step))}")
        if step.failure:
            click.echo(f"    failed: {step.failure}")


def _told(step: StepStatus) -> Iterator[str]:
    from headrace.runtime.events import format_lag

    yield f"{step.batches} batches"
    yield f"{step.rows} rows"
    yield f"last at {step.at or 'never'}"
    if step.at:
        yield f"in {step.milliseconds} ms, {step.rows_per_second:g} rows/s"
    if any(step.lag.values()):
        yield f"lag {format_lag(step.lag)}"
    if step.watermark:
        yield f"watermark {step.watermark}"
    yield f"{step.state_rows} in state"
    yield f"{step.late} late"
    yield f"{step.duplicates} duplicates"
    for kind in ("quarantined", "dropped", "warned"):
        for rule, count in getattr(step, kind).items():
            yield f"{count} {kind}: {rule}"
