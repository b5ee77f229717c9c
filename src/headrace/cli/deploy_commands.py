"""`headrace plan`, `deploy`, `promote`, `rollback`, `destroy`: show the changes of a deployment, and apply them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli import confirmation, shared_options
from headrace.cli.apply_plan import apply_options, apply_plan, print_plan
from headrace.cli.current_release import current_release
from headrace.cli.help_examples import examples

if TYPE_CHECKING:
    from headrace.deploy.deploy_target import DeployTarget
    from headrace.deploy.gate import Gate
    from headrace.release.releases import Release

EXIT_CHANGES = 3  # the exit code of `plan --exit-code` if something would change

release_option = click.option(
    "--release",
    "release_id",
    metavar="ID",
    help="The id of a built release, or its first characters; by default the release of the working tree.",
)


def _open_release_and_target(
    bundle_dir: Path, environment: str, release_id: str | None, allowed_files: tuple[str, ...]
) -> tuple[Release, DeployTarget]:
    """Return the release to deploy, and the environment to deploy it to.

    With `release_id`, find this release and verify its files. If `release_id` is None, use the release of the working
    tree, and build it if it is not built yet.
    """
    from headrace.config.load import find_root
    from headrace.deploy.deploy_target import open_target
    from headrace.release import releases

    root = find_root(bundle_dir)
    if release_id is None:
        release = current_release(root, allowed_files)
    else:
        release = releases.find(root, release_id)
        releases.require_intact(release)
    return release, open_target(root, environment)


@click.command(epilog=examples("headrace plan --env staging", "headrace plan --env staging --save plan.json"))
@shared_options.environment()
@release_option
@click.option(
    "--save",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the plan to a file, for `deploy --plan`.",
)
@click.option("--exit-code", is_flag=True, help=f"Exit with {EXIT_CHANGES} if something would change.")
@shared_options.allow_file
@shared_options.adopt
@shared_options.bundle_dir
@shared_options.output_format
def plan(
    environment: str,
    release_id: str | None,
    save: Path | None,
    exit_code: bool,
    adopted_jobs: tuple[str, ...],
    allowed_files: tuple[str, ...],
    bundle_dir: Path,
    as_json: bool,
) -> None:
    """Show what a deployment would change.

    Changes and uploads nothing. Builds the release of the working tree if it is not built yet.
    """
    from headrace.deploy import planner
    from headrace.deploy.policy import require_supported_compute
    from headrace.deploy.state_store import StateStore

    release, target = _open_release_and_target(bundle_dir, environment, release_id, allowed_files)
    new_plan = planner.plan(release, target, StateStore(target).read(), adopted_jobs)
    if save is not None:
        save.write_text(new_plan.to_json())
    print_plan(new_plan, as_json=as_json)
    require_supported_compute(new_plan)
    if exit_code and not new_plan.is_empty:
        sys.exit(EXIT_CHANGES)


@click.command(epilog=examples("headrace deploy --env staging", "headrace deploy --plan plan.json --yes"))
@shared_options.environment()
@release_option
@click.option(
    "--plan",
    "plan_file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Apply this saved plan, with its environment and release instead of --env and --release. Fail if the "
    "environment has changed since the plan was made.",
)
@shared_options.allow_file
@apply_options
@shared_options.bundle_dir
def deploy(
    environment: str,
    release_id: str | None,
    plan_file: Path | None,
    allowed_files: tuple[str, ...],
    bundle_dir: Path,
    **options: Any,
) -> None:
    """Deploy a release.

    By default, deploys the release of the working tree, and builds it if it is not built yet. Shows the plan, asks for
    confirmation, and applies exactly that plan. After a crash or Ctrl-C, the same command continues the deployment.
    """
    from headrace.deploy import planner
    from headrace.deploy.plan import Plan, require_current
    from headrace.deploy.state_store import StateStore

    saved_plan = Plan.load(plan_file) if plan_file else None
    if saved_plan is not None:
        environment, release_id = saved_plan.environment, saved_plan.release
    release, target = _open_release_and_target(bundle_dir, environment, release_id, allowed_files)
    adopted_jobs = list(options["adopted_jobs"])
    if saved_plan is not None:
        adopted_jobs += [job.key for job in saved_plan.jobs if job.taken_over]
    new_plan = planner.plan(release, target, StateStore(target).read(), adopted_jobs)
    if saved_plan is not None:
        require_current(saved_plan, new_plan)
    apply_plan("deploy", new_plan, release, target, options)


@click.command(epilog=examples("headrace promote --from staging --to prod"))
@click.option(
    "--from",
    "from_environment",
    metavar="NAME",
    required=True,
    help="The environment whose current release is promoted.",
)
@click.option("--to", "environment", metavar="NAME", required=True, help="The environment to deploy the release to.")
@click.option(
    "--gate",
    type=click.Choice(["success", "started", "none"]),
    default="success",
    show_default=True,
    help="What each job needs in the --from environment, without a failed run since: success is a successful run of "
    "the release, or one whose steps have worked for --stable-for; started is a running one; none is no run.",
)
@click.option(
    "--stable-for",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=600,
    show_default=True,
    help="How long the steps of a running job must have committed batches, or have had nothing to read.",
)
@apply_options
@shared_options.bundle_dir
def promote(
    from_environment: str, environment: str, gate: Gate, stable_for: float, bundle_dir: Path, **options: Any
) -> None:
    """Deploy the release of one environment to another, byte for byte.

    Fails if the release has not proved itself in the first environment.
    """
    from headrace.config.load import find_root
    from headrace.deploy import planner, upload
    from headrace.deploy.deploy_target import open_target
    from headrace.deploy.gate import require_deployed, require_proven
    from headrace.deploy.state_store import StateStore

    root = find_root(bundle_dir)
    from_target = open_target(root, from_environment, option="--from")
    target = open_target(root, environment, option="--to")
    from_state = StateStore(from_target).read()
    require_deployed(from_target, from_state)
    for line in require_proven(from_target, from_state, gate, stable_for):
        click.echo(line)
    release = upload.fetch_release(from_state.release, from_target, root, click.echo)
    new_plan = planner.plan(release, target, StateStore(target).read(), options["adopted_jobs"])
    apply_plan("promote", new_plan, release, target, options, promoted_from=from_environment)


@click.command(epilog=examples("headrace rollback --env prod", "headrace rollback --env prod --to 3f2a"))
@shared_options.environment()
@click.option(
    "--to",
    "release_id",
    metavar="ID",
    help="The id of the release, or its first characters; by default the previous release.",
)
@apply_options
@shared_options.bundle_dir
def rollback(environment: str, release_id: str | None, bundle_dir: Path, **options: Any) -> None:
    """Deploy an earlier release again.

    Does not change checkpoints or tables.
    """
    from headrace.config.load import find_root
    from headrace.deploy import planner, upload
    from headrace.deploy.deploy_target import open_target
    from headrace.deploy.release_history import choose_rollback_release
    from headrace.deploy.state_store import StateStore

    root = find_root(bundle_dir)
    target = open_target(root, environment, lenient=True)
    state = StateStore(target).read()
    release = upload.fetch_release(choose_rollback_release(state, target, release_id), target, root, click.echo)
    new_plan = planner.plan(release, target, state, options["adopted_jobs"])
    apply_plan("rollback", new_plan, release, target, options)


@click.command(epilog=examples("headrace destroy --env dev"))
@shared_options.environment()
@shared_options.drain
@shared_options.break_lock
@shared_options.yes
@shared_options.bundle_dir
def destroy(environment: str, drain: float, break_lock: bool, yes: bool, bundle_dir: Path) -> None:
    """Delete an environment's jobs and releases.

    Does not delete tables or checkpoints.
    """
    from headrace.config.load import find_root
    from headrace.deploy import deployed_jobs, planner
    from headrace.deploy.deploy_target import open_target
    from headrace.deploy.drain import Timeouts
    from headrace.deploy.state_store import StateStore

    target = open_target(find_root(bundle_dir), environment, lenient=True)
    state = StateStore(target).read()
    click.echo(f"will delete from {target.remote.name}: {target.root}")
    # After an interrupted deployment, a job may be missing from the state. A job that was deleted outside Headrace is
    # only in the state.
    existing_jobs, _ = planner.find_jobs(target, state)
    for key in sorted(state.jobs.keys() | existing_jobs.keys()):
        click.echo(f"  - job {key}")
    confirmation.confirm_change(target, yes=yes, name_required=True)
    deployed_jobs.destroy(target, Timeouts(drain=drain), break_lock=break_lock, report=click.echo)
