"""The functions that a deployed job calls. They return on success and raise on failure, and never raise SystemExit.

Each function reads the parameters of the job from sys.argv.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.config.models import Layer
from headrace.errors import ConfigurationError
from headrace.graph import order, static_checks

if TYPE_CHECKING:
    from headrace.runtime.events import Event
__all__ = ["bronze", "gold", "reset", "run", "silver"]


def run() -> None:
    """Run all steps of a pipeline, or only those given with --step."""
    _run(sys.argv[1:], layer=None)


def bronze() -> None:
    """Run the bronze steps of a pipeline, or those given with --step, whatever their layer."""
    _run(sys.argv[1:], layer="bronze")


def silver() -> None:
    """Run the silver steps of a pipeline, or those given with --step, whatever their layer."""
    _run(sys.argv[1:], layer="silver")


def gold() -> None:
    """Run the gold steps of a pipeline, or those given with --step, whatever their layer."""
    _run(sys.argv[1:], layer="gold")


def reset() -> None:
    """Start steps over, as `headrace reset` does in an environment with deployed jobs; or with --dry-run only plan it.

    The parameters are those of the pipeline's deployed task, and those of the reset. --step is ignored.
    """
    from headrace.config.load import find_root, load_bundle
    from headrace.io.start_position import parse_position
    from headrace.runtime.reset import apply_reset, plan_reset, undo_reset
    from headrace.runtime.reset_text import format_resets, format_undone
    from headrace.spark import session

    parser = _parser()
    parser.add_argument("--steps", default="")  # separated by commas
    parser.add_argument("--table", choices=["keep", "truncate"])
    parser.add_argument("--from", dest="position")
    for name in ("--downstream", "--undo", "--dry-run"):
        parser.add_argument(name, choices=["true", "false"], default="false")
    arguments = parser.parse_args(sys.argv[1:])
    steps = [step for step in arguments.steps.split(",") if step]
    bundle = load_bundle(find_root(Path(arguments.conf)), arguments.env, dict(arguments.value))
    with session.bundle_session(bundle, name=f"reset {arguments.pipeline}") as spark:
        if arguments.undo == "true":
            print(format_undone(undo_reset(spark, bundle, arguments.pipeline, steps)))
            return
        planned = plan_reset(
            spark,
            bundle,
            arguments.pipeline,
            steps,
            downstream=arguments.downstream == "true",
            table=arguments.table,
            position=parse_position(arguments.position) if arguments.position else None,
        )
        print(format_resets(planned))
        if arguments.dry_run == "false":
            apply_reset(spark, bundle, planned)


class _ArgumentParser(argparse.ArgumentParser):
    """Raises ConfigurationError for wrong arguments, where argparse would exit."""

    def error(self, message: str) -> None:  # type: ignore[override]
        raise ConfigurationError(message, where="the job's parameters", fix=self.format_usage().strip())


def _run(argv: Sequence[str], *, layer: Layer | None) -> None:
    """Run the steps given with --step. Without --step, run the steps of the layer, or all steps if `layer` is None."""
    from headrace.config.load import find_root, load_bundle
    from headrace.runtime import runner
    from headrace.runtime.announced_run import announce_run
    from headrace.spark import session

    arguments = _parse(argv)
    pipeline = arguments.pipeline
    bundle = load_bundle(find_root(Path(arguments.conf)), arguments.env, dict(arguments.value))
    all_steps = order.pipeline_steps(bundle, pipeline)
    steps = arguments.step or [step.name for step in all_steps if layer is None or step.layer == layer]
    if not steps:
        raise ConfigurationError(
            f"pipeline {pipeline!r} has no {layer} step", fix="call the entry point `run`, or that of another layer"
        )
    is_short = runner.is_short(bundle, pipeline, steps, follow=False, once=False)
    static_checks.require_functions(bundle)
    with (
        announce_run(bundle, pipeline, watch=_print_event) as announced,
        session.bundle_session(bundle, name=pipeline, short=is_short, record_class_archive=is_short) as spark,
    ):
        runner.run(spark, bundle, pipeline, announced=announced, only=steps)


def _print_event(event: Event) -> None:
    """Print a batch or a warning to the log of the job. Other events are not printed."""
    from headrace.runtime.events import format_batch, format_warning

    if event.what == "batch":
        print(format_batch(event))
    elif event.what == "warning":
        print(f"Warning: {format_warning(event)}")


def _parse_pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form name=value")
    return name, value


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    return _parser().parse_args(argv)


def _parser() -> _ArgumentParser:
    parser = _ArgumentParser(prog="headrace job", add_help=False)
    parser.add_argument("--pipeline", required=True)
    parser.add_argument("--env", required=True)
    parser.add_argument("--conf", default=".")
    parser.add_argument("--step", action="append", default=[])
    parser.add_argument("--value", action="append", default=[], metavar="NAME=VALUE", type=_parse_pair)
    return parser
