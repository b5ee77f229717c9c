"""`headrace status`: show what each step of a pipeline has processed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import shared_options
from headrace.cli.help_examples import examples

if TYPE_CHECKING:
    from headrace.runtime.run_status import StepStatus


@click.command(epilog=examples("headrace status orders", "headrace status orders -o json"))
@click.argument("pipeline")
@shared_options.environment()
@shared_options.values
@shared_options.bundle_dir
@shared_options.output_format
def status(pipeline: str, environment: str, values: dict[str, str], bundle_dir: Path, as_json: bool) -> None:
    """Show what each step of a pipeline has processed.

    Reads the recorded events of the pipeline's runs, without starting Spark. The pipeline may be running or not.
    """
    from headrace.config.load import find_root, load_bundle
    from headrace.graph.order import pipeline_steps
    from headrace.runtime.run_status import status_of

    bundle = load_bundle(find_root(bundle_dir), environment, values)
    run_status = status_of(
        bundle.run_files_directory, pipeline, [step.name for step in pipeline_steps(bundle, pipeline)]
    )
    if as_json:
        click.echo(json.dumps(run_status.as_json()))
        return
    click.echo(f"pipeline {pipeline}, environment {environment}: {run_status.description}")
    if run_status.since:
        click.echo(f"  totals since {run_status.since}")
    for step in run_status.steps:
        click.echo(f"  {step.name}: {', '.join(_describe(step))}")
        if step.failure:
            click.echo(f"    failed: {step.failure}")


def _describe(step: StepStatus) -> Iterator[str]:
    from headrace.runtime.events import format_lag, late_label

    yield f"{step.batches} batches"
    yield f"{step.rows} rows"
    yield f"last batch at {step.at}" if step.at else "no batch yet"
    if step.at:
        yield f"in {step.milliseconds} ms, {step.rows_per_second:g} rows/s"
    if any(step.lag.values()):
        yield f"lag {format_lag(step.lag)}"
    if step.watermark:
        yield f"watermark {step.watermark}"
    yield f"{step.state_rows} in state"
    yield f"{step.late} {late_label(step.late_unit)}"
    yield f"{step.duplicates} duplicates"
    for label, counts in (("quarantined", step.quarantined), ("dropped", step.dropped), ("warned", step.warned)):
        for rule, count in counts.items():
            yield f"{count} {label}: {rule}"
