"""`headrace jobs`, `history`, `start`, `stop`, `logs`: what is deployed, and its runs."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from headrace.cli import shared_options

if TYPE_CHECKING:
    from headrace.deploy.deploy_target import DeployTarget
    from headrace.deploy.remote import Run


@click.command()
@shared_options.environment()
@shared_options.root
@shared_options.facts
def jobs(environment: str, start: Path, as_json: bool) -> None:
    """Show the deployed jobs and their runs."""
    from headrace.cli.text_table import print_table
    from headrace.deploy.deployed_jobs import job_statuses
    from headrace.deploy.state_store import StateStore

    place = _place(start, environment)
    found = job_statuses(place, StateStore(place).read())
    if as_json:
        click.echo(json.dumps([asdict(one) for one in found], indent=2))
        return
    rows = [
        [one.key, str(one.id), one.release, " ".join(filter(None, (one.trigger, one.state))), _run_in_words(one.last)]
        for one in found
    ]
    print_table(["job", "id", "release", "starts", "last run"], rows, empty=f"no job is deployed to {environment}")


@click.command()
@shared_options.environment()
@shared_options.root
@shared_options.facts
def history(environment: str, start: Path, as_json: bool) -> None:
    """Show what was deployed, when and by whom."""
    from headrace.cli.text_table import print_table
    from headrace.deploy.state_store import StateStore
    from headrace.deploy.stored_json import to_document

    state = StateStore(_place(start, environment)).read()
    if as_json:
        click.echo(json.dumps([to_document(one) for one in state.history], indent=2))
        return
    rows = [
        [
            str(one.number),
            one.at,
            f"{one.command} from {one.promoted_from}" if one.promoted_from else one.command,
            one.release,
            (one.commit[:12] or "no commit") + (", changed since" if one.dirty and one.commit else ""),
            one.by,
            one.outcome,
        ]
        for one in reversed(state.history)
    ]
    columns = ["", "at", "what", "release", "commit", "by", "ended"]
    print_table(columns, rows, empty=f"nothing was deployed to {environment}")


@click.command()
@click.argument("job")
@shared_options.environment()
@shared_options.break_lock
@shared_options.root
def start(job: str, environment: str, break_lock: bool, start: Path) -> None:
    """Start a deployed job, or let a stopped one run again."""
    from headrace.deploy.deployed_jobs import start_job

    start_job(job, _place(start, environment), break_lock=break_lock, report=click.echo)


@click.command()
@click.argument("job")
@shared_options.environment()
@shared_options.limits
@shared_options.break_lock
@shared_options.values
@shared_options.root
def stop(
    job: str,
    environment: str,
    drain: float,
    within: float,
    break_lock: bool,
    values: dict[str, str],
    start: Path,
) -> None:
    """Stop a deployed job, or a run on this machine.

    It stops at its batches' end. A deployed job stays stopped until it is started again, also over a deployment. For an
    environment that nothing is deployed to, as local is, JOB is the pipeline.
    """
    from headrace.config.databricks.databricks_yml import read_resources
    from headrace.config.load import find_root, load_bundle
    from headrace.config.models import milliseconds
    from headrace.deploy.deployed_jobs import stop_job
    from headrace.deploy.drain import Timeouts
    from headrace.graph.order import pipeline_steps
    from headrace.runtime.stop_run import stop_run

    root = find_root(start)
    if environment not in read_resources(root).targets:
        bundle = load_bundle(root, environment, values)
        pipeline_steps(bundle, job)  # a pipeline that is not there is told here
        if click.get_current_context().get_parameter_source("drain") is ParameterSource.DEFAULT:
            drain += milliseconds(bundle.environment.stop_grace) / 1000  # then the run ends by itself
        stop_run(bundle, job, within=drain, say=click.echo)
        return
    stop_job(job, _place(start, environment), Timeouts(drain, within), break_lock=break_lock, report=click.echo)


@click.command()
@click.argument("job")
@shared_options.environment()
@click.option("--run", "number", metavar="ID", type=int, help="Another run than the latest.")
@shared_options.root
def logs(job: str, environment: str, number: int | None, start: Path) -> None:
    """Show what a deployed job's run has said."""
    from headrace.deploy.deployed_jobs import read_job_output
    from headrace.deploy.state_store import StateStore

    place = _place(start, environment)
    run, said = read_job_output(job, place, StateStore(place).read(), number)
    click.echo(f"run {run.id}: {_run_in_words(run)}{f', {run.url}' if run.url else ''}", err=True)
    click.echo(said, nl=False)


def _place(start: Path, environment: str) -> DeployTarget:
    from headrace.config.load import find_root
    from headrace.deploy.deploy_target import open_target

    return open_target(find_root(start), environment)


def _run_in_words(run: Run | None) -> str:
    if run is None:
        return "never ran"
    since = datetime.fromtimestamp((run.ended or run.began) / 1000, UTC).isoformat(timespec="seconds")
    return f"{(run.result or run.phase).lower()} since {since}"
