"""`headrace checkpoint`: list, show, verify, compare, rename and adopt the checkpoints of an environment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import shared_options
from headrace.cli.checkpoint_facts import checkpoint_facts, difference_facts
from headrace.cli.help_examples import examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.config.models import Bundle


@click.group(epilog=examples("headrace checkpoint list", "headrace checkpoint show orders/gold_revenue"))
def checkpoint() -> None:
    """Inspect, compare, rename and adopt checkpoints."""


@checkpoint.command("list", epilog=examples("headrace checkpoint list --env local"))
@shared_options.environment()
@shared_options.values
@shared_options.bundle_dir
@shared_options.output_format
def list_checkpoints(environment: str, values: dict[str, str], bundle_dir: Path, as_json: bool) -> None:
    """List all steps of the bundle with their checkpoints."""
    from headrace.cli.text_table import print_table

    bundle = _load(bundle_dir, environment, values)
    with _session_if_remote(bundle) as spark:
        steps = [(pipeline.name, step) for pipeline in bundle.pipelines.values() for step in pipeline.steps]
        summaries = [checkpoint_facts(bundle, pipeline, step, spark) for pipeline, step in steps]
    if as_json:
        click.echo(json.dumps(summaries, indent=2))
        return
    rows = [
        [
            facts["step"],
            str(facts["generation"]),
            _batch_text(facts["completed"]),
            facts["query"],
            ", ".join(facts["damaged"]),
        ]
        for facts in summaries
    ]
    print_table(["step", "generation", "last batch", "query", "damage"], rows, empty="the bundle has no steps")


@checkpoint.command("show", epilog=examples("headrace checkpoint show orders/gold_revenue"))
@click.argument("step", metavar="PIPELINE/STEP")
@shared_options.environment()
@shared_options.values
@shared_options.bundle_dir
@shared_options.output_format
def show_checkpoint(step: str, environment: str, values: dict[str, str], bundle_dir: Path, as_json: bool) -> None:
    """Show a step's checkpoint: its last completed batch, its tables and the settings that Spark restores from it."""
    bundle = _load(bundle_dir, environment, values)
    with _session_if_remote(bundle) as spark:
        facts = checkpoint_facts(bundle, *_parse_step(bundle, step), spark, with_details=True)
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    for key, value in facts.items():
        if isinstance(value, dict):
            click.echo(f"{key}:")
            for name, entry in sorted(value.items()):
                click.echo(f"  {name}: {entry}")
        else:
            click.echo(f"{key}: {', '.join(value) if isinstance(value, list) else value}")


@checkpoint.command("verify", epilog=examples("headrace checkpoint verify orders"))
@click.argument("pipeline")
@shared_options.environment()
@shared_options.values
@shared_options.bundle_dir
def verify_checkpoints(pipeline: str, environment: str, values: dict[str, str], bundle_dir: Path) -> None:
    """Check that the checkpoints of a pipeline are complete and belong to its tables. Writes nothing."""
    from headrace.errors import GuardError
    from headrace.graph.order import pipeline_steps
    from headrace.runtime.start_guard import StartGuard
    from headrace.spark import session

    bundle = _load(bundle_dir, environment, values)
    steps = pipeline_steps(bundle, pipeline)
    with session.bundle_session(bundle, name=f"verify {pipeline}") as spark:
        problems = StartGuard(spark, bundle, pipeline, steps).check_pairs()
    if problems:
        raise GuardError.of(problems)
    click.echo(f"ok: {len(steps)} steps")


@checkpoint.command("diff", epilog=examples("headrace checkpoint diff orders", "headrace checkpoint diff orders/gold"))
@click.argument("steps", metavar="PIPELINE[/STEP]")
@shared_options.environment()
@shared_options.values
@shared_options.bundle_dir
@shared_options.output_format
def diff_checkpoints(steps: str, environment: str, values: dict[str, str], bundle_dir: Path, as_json: bool) -> None:
    """Show how the steps of a pipeline differ from the queries that wrote their checkpoints. Writes nothing.

    For each change, shows what it means for the next start of the step.
    """
    from headrace.runtime.runner import compare_with_checkpoints
    from headrace.spark import session

    bundle = _load(bundle_dir, environment, values)
    pipeline, _, step = steps.partition("/")
    with session.bundle_session(bundle, name=f"diff {pipeline}") as spark:
        found = compare_with_checkpoints(spark, bundle, pipeline, [step] if step else [])
    differences = [difference_facts(f"{pipeline}/{name}", changes) for name, changes in found.items()]
    if as_json:
        click.echo(json.dumps(differences, indent=2))
        return
    for difference in differences:
        click.echo(f"{difference['step']}: {difference['result']}")
        for each in difference["changes"]:
            click.echo(f"  {each['verdict']}: {each['change']}")
        if difference["accept"]:
            click.echo(f'  to start all the same: accept: ["{difference["accept"]}"] in the step')


@checkpoint.command("rename", epilog=examples("headrace checkpoint rename orders/gold orders/gold_revenue"))
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@shared_options.environment()
@shared_options.values
@shared_options.bundle_dir
def rename_checkpoint(old: str, new: str, environment: str, values: dict[str, str], bundle_dir: Path) -> None:
    """Move the checkpoint of a renamed step, or all checkpoints of a renamed pipeline.

    For a step, OLD and NEW are of the form PIPELINE/STEP. For a pipeline, they are the names of the pipeline.
    """
    from headrace.checkpoints.checkpoint_files import open_files
    from headrace.checkpoints.rename import rename_checkpoints

    bundle = _load(bundle_dir, environment, values)
    with _session_if_remote(bundle) as spark:
        rename_checkpoints(open_files(bundle.environment.checkpoints, spark), old, new)
    click.echo(f"{old} is now {new}")


@checkpoint.command("adopt", epilog=examples("headrace checkpoint adopt orders/gold_revenue"))
@click.argument("step", metavar="PIPELINE/STEP")
@shared_options.environment()
@shared_options.yes
@shared_options.values
@shared_options.bundle_dir
def adopt_table(step: str, environment: str, yes: bool, values: dict[str, str], bundle_dir: Path) -> None:
    """Let a step write into existing tables that it has not written.

    The rows of the tables stay. A step without a checkpoint reads its sources from the beginning and adds all of their
    rows, so rows that a table has already are in it twice, unless the sink is an upsert.
    """
    from headrace.cli.confirmation import confirm_checkpoint_change
    from headrace.runtime.adoption import adopt_tables
    from headrace.spark import session

    bundle = _load(bundle_dir, environment, values)
    pipeline, name = _parse_step(bundle, step)
    tables = bundle.pipelines[pipeline].steps[name].tables_written
    click.echo(f"Step {name} will add its rows to those that its tables have: {', '.join(tables)}")
    confirm_checkpoint_change(yes=yes)
    with session.bundle_session(bundle, name=f"adopt {step}") as spark:
        for table, accepted in adopt_tables(spark, bundle, pipeline, name).items():
            click.echo(f"table {table} (version {accepted.version}) now belongs to {step}")


def _load(bundle_dir: Path, environment: str, values: dict[str, str]) -> Bundle:
    from headrace.config.load import find_root, load_bundle

    return load_bundle(find_root(bundle_dir), environment, values)


def _parse_step(bundle: Bundle, text: str) -> tuple[str, str]:
    """Return the names of the pipeline and the step in a text of the form PIPELINE/STEP.

    Raise UsageError if the text has another form, ConfigurationError if the bundle has no such step.
    """
    from headrace.graph.order import select_steps

    pipeline, separator, step = text.partition("/")
    if not separator:
        raise click.UsageError(f"{text!r} is not of the form PIPELINE/STEP")
    select_steps(bundle, pipeline, [step])  # raises ConfigurationError for an unknown pipeline or step
    return pipeline, step


@contextmanager
def _session_if_remote(bundle: Bundle) -> Iterator[SparkSession | None]:
    """Yield a Spark session, which reads checkpoints in remote storage, or None if they are on this machine's disk."""
    from headrace.config.models import local_path
    from headrace.spark import session

    if local_path(bundle.environment.checkpoints):
        yield None
        return
    with session.bundle_session(bundle, name="checkpoint") as spark:
        yield spark


def _batch_text(number: int) -> str:
    return "" if number < 0 else str(number)  # -1: no batch is completed
