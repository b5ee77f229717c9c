"""`headrace jobs`, `history`, `start`, `stop`, `logs`: show, start and stop deployed jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from headrace.cli import shared_options
from headrace.cli.help_examples import examples

if TYPE_CHECKING:
    from headrace.deploy.deploy_state import HistoryEntry
    from headrace.deploy.deploy_target import DeployTarget
    from headrace.deploy.deployed_jobs import JobStatus
    from headrace.deploy.remote import Run


@click.command(epilog=examples("headrace jobs --env prod", "headrace jobs orders --env prod"))
@click.argument("job", required=False)
@shared_options.environment()
@shared_options.bundle_dir
@shared_options.output_format
def jobs(job: str | None, environment: str, bundle_dir: Path, as_json: bool) -> None:
    """Show the deployed jobs and their runs.

    With JOB, shows the latest runs of this job, with their messages.
    """
    from headrace.deploy.deployed_jobs import job_statuses, list_job_runs
    from headrace.deploy.state_store import StateStore
    from headrace.deploy.stored_json import to_document

    target = _open_target(bundle_dir, environment)
    state = StateStore(target).read()
    shown: Sequence[Any] = list_job_runs(job, target, state) if job else job_statuses(target, state)
    if as_json:
        click.echo(json.dumps([to_document(each) for each in shown], indent=2))
    elif job:
        _print_runs(shown, empty=f"job {job} has no run yet")
    else:
        _print_jobs(shown, empty=f"no job is deployed to {environment}")
        if state.intent is not None:
            intent = state.intent
            click.echo(f"unfinished: {intent.command} of {intent.release} by {intent.by} at {intent.at}")
            click.echo(f"  run the same command again to continue it; the rest: headrace plan --env {environment}")


def _print_jobs(statuses: Sequence[JobStatus], *, empty: str) -> None:
    from headrace.cli.text_table import print_table
    from headrace.deploy.health import describe_heartbeats

    rows = [
        [each.key, str(each.id), each.release, f"{each.trigger} {each.state}".strip(), _format_run(each.shown_run)]
        for each in statuses
    ]
    print_table(["job", "id", "release", "trigger", "last run"], rows, empty=empty)
    for each in statuses:
        if each.shown_run and each.shown_run.message:
            click.echo(f"{each.key}: run {each.shown_run.id}: {each.shown_run.message}")
        if each.heartbeats:
            click.echo(f"{each.key}: {describe_heartbeats(each.heartbeats)}")
        for failure in dict.fromkeys(beat.failure for beat in each.heartbeats if beat.failure):
            click.echo(f"{each.key}: {failure}")


def _print_runs(runs: Sequence[Run], *, empty: str) -> None:
    from headrace.cli.text_table import print_table

    rows = [
        [str(run.id), _format_time(run.began), _format_time(run.ended), run.release, _result(run), run.message]
        for run in runs
    ]
    print_table(["run", "began", "ended", "release", "result", "message"], rows, empty=empty)


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
@click.option("--run", "run_id", metavar="ID", type=int, help="The run's id; by default the latest run with output.")
@shared_options.bundle_dir
def logs(job: str, environment: str, run_id: int | None, bundle_dir: Path) -> None:
    """Show the output of a deployed job's run."""
    from headrace.deploy.deployed_jobs import read_job_output
    from headrace.deploy.state_store import StateStore

    target = _open_target(bundle_dir, environment)
    run, text = read_job_output(job, target, StateStore(target).read(), run_id)
    url_text = f", {run.url}" if run.url else ""
    message = f": {run.message}" if run.message else ""
    # stdout has only the output of the job
    click.echo(f"run {run.id}: {_format_run(run)}{message}{url_text}", err=True)
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
    return f"{_result(run)} since {_format_time(run.ended or run.began)}" if run else "never run"


def _result(run: Run) -> str:
    return (run.result or run.phase).lower()


def _format_time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds") if milliseconds else ""
