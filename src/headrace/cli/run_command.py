"""`headrace run`: run a pipeline and show its batches."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli import shared_options
from headrace.cli.help_examples import examples
from headrace.graph import static_checks


@click.command(epilog=examples("headrace run orders --follow", "headrace run orders --step bronze_orders --once"))
@click.argument("pipeline")
@shared_options.environment()
@click.option(
    "--step",
    "steps",
    metavar="NAME",
    multiple=True,
    help="Run only this step, not all steps of the pipeline. Can be repeated.",
)
@click.option("--follow", is_flag=True, help="Keep processing new input until Ctrl-C.")
@click.option("--once", is_flag=True, help="Process the available data and stop, even if the trigger is unbounded.")
@shared_options.values
@shared_options.bundle_dir
def run(
    pipeline: str,
    environment: str,
    steps: tuple[str, ...],
    follow: bool,
    once: bool,
    values: dict[str, str],
    bundle_dir: Path,
) -> None:
    """Run a pipeline.

    A run ends when it has processed the available data, unless --follow or the trigger in the environment's file keeps
    it running.
    """
    from headrace.cli.run_display import RunDisplay
    from headrace.config.load import find_root, load_bundle
    from headrace.runtime import runner
    from headrace.runtime.announced_run import announce_run
    from headrace.spark import session

    if follow and once:
        raise click.UsageError("--follow and --once cannot be used together")
    bundle = load_bundle(find_root(bundle_dir), environment, values)
    is_unbounded = runner.is_unbounded(bundle, pipeline, steps, follow=follow, once=once)
    # A short run ends by itself and has little to read.
    is_short = runner.is_short(bundle, pipeline, steps, follow=follow, once=once)
    static_checks.require_functions(bundle)
    with (
        RunDisplay(bundle, pipeline, show_table=is_unbounded) as display,
        # Records the start and the end of the run, and obeys requests to stop it, also while Spark starts.
        announce_run(bundle, pipeline, watch=display.show) as announced,
        session.bundle_session(bundle, name=pipeline, short=is_short, record_class_archive=is_short) as spark,
    ):
        display.start_table()
        runner.run(spark, bundle, pipeline, announced=announced, only=steps, follow=follow, once=once)
