"""`headrace run`: runs a pipeline and shows what its batches do."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli import shared_options
from headrace.graph import static_checks


@click.command()
@click.argument("pipeline")
@shared_options.environment()
@click.option("--step", "only", metavar="NAME", multiple=True, help="Run only this step; may be given again.")
@click.option("--follow", is_flag=True, help="Go on with what comes in, until Ctrl-C.")
@click.option("--once", is_flag=True, help="Stop when all that is there has been read, whatever the trigger.")
@shared_options.values
@shared_options.root
def run(
    pipeline: str,
    environment: str,
    only: tuple[str, ...],
    follow: bool,
    once: bool,
    values: dict[str, str],
    start: Path,
) -> None:
    """Run a pipeline.

    A run processes what is there and ends; its trigger in the environment's file or --follow makes it go on.
    """
    from headrace.cli.run_display import Live
    from headrace.config.load import find_root, load_bundle
    from headrace.runtime import runner
    from headrace.spark import session

    if follow and once:
        raise click.UsageError("--follow and --once exclude each other")
    bundle = load_bundle(find_root(start), environment, values)
    going_on = runner.is_unbounded(bundle, pipeline, only, follow=follow, once=once)
    short = runner.is_short(bundle, pipeline, only, follow=follow, once=once)
    static_checks.require_functions(bundle)
    with (
        Live(bundle, pipeline, table=going_on) as live,
        runner.announce_run(bundle, pipeline, watch=live.show) as announced,
        session.bundle_session(bundle, name=pipeline, short=short, record=short) as spark,
    ):
        live.ready()
        runner.run(spark, bundle, pipeline, announced=announced, only=only, follow=follow, once=once)
