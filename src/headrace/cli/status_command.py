"""`headrace status`: show what each step of a pipeline has processed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import shared_options
from headrace.cli.help_examples import examples

if TYPE_CHECKING:
    from headrace.checkpoints.heartbeat import Heartbeat
    from headrace.runtime.run_status import StepStatus


@click.command(epilog=examples("headrace status orders", "headrace status orders -o json"))
@click.argument("pipeline")
@shared_options.environment()
@shared_options.values
@shared_options.bundle_dir
@shared_options.output_format
def status(pipeline: str, environment: str, values: dict[str, str], bundle_dir: Path, as_json: bool) -> None:
    """Show what each step of a pipeline has processed.

    Reads the recorded events of the pipeline's runs on this machine, without starting Spark. The pipeline may be
    running or not. If it has never run here and the environment has deployed jobs, reads what their runs report.
    """
    from headrace.config.databricks.databricks_yml import read_resources
    from headrace.config.load import find_root, load_bundle
    from headrace.graph.order import pipeline_steps
    from headrace.runtime.run_status import status_of

    root = find_root(bundle_dir)
    is_deployable = environment in read_resources(root).targets
    bundle = load_bundle(root, environment, values, lenient=is_deployable)
    run_status = status_of(
        bundle.run_files_directory, pipeline, [step.name for step in pipeline_steps(bundle, pipeline)]
    )
    if is_deployable and not run_status.since:
        _show_deployed(root, pipeline, environment, as_json=as_json)
        return
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


def _show_deployed(root: Path, pipeline: str, environment: str, *, as_json: bool) -> None:
    """Show the heartbeats of the pipeline's steps in the environment's deployed jobs."""
    from headrace.deploy.deploy_target import open_target
    from headrace.deploy.health import read_heartbeats
    from headrace.deploy.state_store import StateStore

    target = open_target(root, environment, lenient=True)
    jobs = sorted(StateStore(target).read().jobs.items())
    beats = [(key, beat) for key, deployed in jobs for beat in read_heartbeats(deployed.heartbeat_files, target)]
    found = [(key, beat) for key, beat in beats if beat.pipeline == pipeline]
    if as_json:
        click.echo(json.dumps([{"job": key, **asdict(beat)} for key, beat in found]))
        return
    if not found:
        click.echo(f"pipeline {pipeline}, environment {environment}: no run of a deployed job has reported anything")
    for key in dict.fromkeys(key for key, _ in found):
        click.echo(f"pipeline {pipeline}, environment {environment}: job {key}")
        for beat in [beat for job, beat in found if job == key]:
            click.echo(f"  {beat.step}: {', '.join(_describe_heartbeat(beat))}")
            if beat.failure:
                click.echo(f"    failed: {beat.failure}")


def _describe_heartbeat(beat: Heartbeat) -> Iterator[str]:
    yield f"batch {beat.batch}" if beat.has_batch else "no batch yet"
    yield f"{beat.rows} rows"
    if beat.has_batch:
        yield f"last batch at {beat.last_batch_at}"
    if beat.idle_since:
        yield f"nothing to read since {beat.idle_since}"
    yield f"ended at {beat.ended}" if beat.ended else f"running since {beat.started}, last report at {beat.at}"
    yield f"release {beat.release}"


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
