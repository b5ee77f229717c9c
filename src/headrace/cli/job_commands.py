"""`headrace jobs`, `history`, `start`, `stop`, `logs`: show, start and stop deployed jobs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from headrace.cli import shared_options
from headrace.cli.help_examples import examples

if TYPE_CHECKING:
    from headrace.deploy.deploy_state import HistoryEntry
    from headrace.deploy.deploy_target import DeployTarget
    from headrace.deploy.remote import Run


@click.command(epilog=examples("headrace jobs --env prod"))
@shared_options.environment()
@shared_options.bundle_dir
@shared_options.output_format
def jobs(environment: str, bundle_dir: Path, as_json: bool) -> None:
    """Show the deployed jobs and their runs."""
    from headrace.cli.text_table import print_table
    from headrace.deploy.deployed_jobs import job_statuses
    from headrace.deploy.state_store import StateStore
    from headrace.deploy.stored_json import to_document

    target = _open_target(bundle_dir, environment)
    statuses = job_statuses(target, StateStore(target).read())
    if as_json:
        click.echo(json.dumps([to_document(job) for job in statuses], indent=2))
        return
    rows = [
        [job.key, str(job.id), job.release, f"{job.trigger} {job.state}".strip(), _format_run(job.shown_run)]
        for job in statuses
    ]
    print_table(["job", "id", "release", "trigger", "last run"], rows, empty=f"no job is deployed to {environment}")


@click.command(epilog=examples("headrace history --env prod"))
@shared_options.environment()
@shared_options.bundle_dir
@shared_options.output_format
def history(environment: str, bundle_dir: Path, as_json: bool) -> None:
    """Show what was deployed, when and by whom."""
    from headrace.cli.text_table import print_table
    from headrace.deploy.state_store import StateStore
    from headrace.deploy.stored_json import to_document

    state = StateStore(_open_target(bundle_dir, environment)).read()
    if as_json:
        click.echo(json.dumps([to_document(entry) for entry in state.history], indent=2))
        return
    rows = [
        [
            str(entry.number),
            entry.at,
            f"{entry.command} from {entry.promoted_from}" if entry.promoted_from else entry.command,
            entry.release,
            _format_commit(entry),
            entry.by,
            entry.outcome,
        ]
        for entry in reversed(state.history)
    ]
    columns = ["", "at", "command", "release", "commit", "by", "result"]
    print_table(columns, rows, empty=f"nothing was deployed to {environment}")


@click.command(epilog=examples("headrace start orders --env prod"))
@click.argument("job")
@shared_options.environment()
@shared_options.break_lock
@shared_options.bundle_dir
def start(job: str, environment: str, break_lock: bool, bundle_dir: Path) -> None:
    """Start a deployed job, or resume a stopped one."""
    from headrace.deploy.deployed_jobs import start_job

    start_job(job, _open_target(bundle_dir, environment), break_lock=break_lock, report=click.echo)


@click.command(epilog=examples("headrace stop orders", "headrace stop orders --env prod --drain 60"))
@click.argument("job")
@shared_options.environment()
@shared_options.drain
@shared_options.break_lock
@shared_options.values
@shared_options.bundle_dir
def stop(
    job: str,
    environment: str,
    drain: float,
    break_lock: bool,
    values: dict[str, str],
    bundle_dir: Path,
) -> None:
    """Stop a deployed job, or a run on this machine.

    The run finishes its batches first. A deployed job stays stopped until `headrace start`, even if it is deployed
    again. In an environment without deployments, such as local, stops the active run of the pipeline JOB.
    """
    from headrace.config.databricks.databricks_yml import read_resources
    from headrace.config.load import find_root, load_bundle
    from headrace.config.models import milliseconds
    from headrace.deploy.deployed_jobs import stop_job
    from headrace.deploy.drain import Timeouts
    from headrace.graph.order import pipeline_steps
    from headrace.runtime.stop_run import stop_run

    root = find_root(bundle_dir)
    if environment not in read_resources(root).targets:
        bundle = load_bundle(root, environment, values)
        pipeline_steps(bundle, job)  # raises ConfigurationError if there is no pipeline of this name
        if click.get_current_context().get_parameter_source("drain") is ParameterSource.DEFAULT:
            # After a request to stop, the run may use its whole grace period before it ends.
            drain += milliseconds(bundle.environment.stop_grace) / 1000
        stop_run(bundle, job, within=drain, report=click.echo)
        return
    stop_job(
        job, _open_target(bundle_dir, environment), Timeouts(drain=drain), break_lock=break_lock, report=click.echo
    )


@click.command(epilog=examples("headrace logs orders --env prod", "headrace logs orders --env prod --run 1042"))
@click.argument("job")
@shared_options.environment()
@click.option("--run", "run_id", metavar="ID", type=int, help="The run's id; by default the latest run.")
@shared_options.bundle_dir
def logs(job: str, environment: str, run_id: int | None, bundle_dir: Path) -> None:
    """Show the output of a deployed job's run."""
    from headrace.deploy.deployed_jobs import read_job_output
    from headrace.deploy.state_store import StateStore

    target = _open_target(bundle_dir, environment)
    run, text = read_job_output(job, target, StateStore(target).read(), run_id)
    url_text = f", {run.url}" if run.url else ""
    click.echo(f"run {run.id}: {_format_run(run)}{url_text}", err=True)  # stdout has only the output of the job
    click.echo(text, nl=False)


def _open_target(bundle_dir: Path, environment: str) -> DeployTarget:
    from headrace.config.load import find_root
    from headrace.deploy.deploy_target import open_target

    return open_target(find_root(bundle_dir), environment, lenient=True)


def _format_commit(entry: HistoryEntry) -> str:
    if not entry.commit:
        return "none"
    return entry.commit[:12] + (", with uncommitted changes" if entry.dirty else "")


def _format_run(run: Run | None) -> str:
    if run is None:
        return "never run"
    since = datetime.fromtimestamp((run.ended or run.began) / 1000, UTC).isoformat(timespec="seconds")
    return f"{(run.result or run.phase).lower()} since {since}"
