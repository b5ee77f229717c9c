"""What a job calls: plain functions that return when all went well and raise when not; never SystemExit."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.config.models import Layer
from headrace.errors import ConfigurationError
from headrace.graph import static_checks

if TYPE_CHECKING:
    from headrace.runtime.events import Event


def run() -> None:
    """Runs a pipeline's steps, all or those named with --step."""
    _run(sys.argv[1:], layer=None)


def bronze() -> None:
    """Runs the bronze steps of a pipeline."""
    _run(sys.argv[1:], layer="bronze")


def silver() -> None:
    """Runs the silver steps of a pipeline."""
    _run(sys.argv[1:], layer="silver")


def gold() -> None:
    """Runs the gold steps of a pipeline."""
    _run(sys.argv[1:], layer="gold")


class _Arguments(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        raise ConfigurationError(message, where="the job's parameters", fix=self.format_usage().strip())


def _run(argv: Sequence[str], *, layer: Layer | None) -> None:
    from headrace.config.load import find_root, load_bundle
    from headrace.runtime import runner
    from headrace.spark import session

    given = _parse(argv)
    bundle = load_bundle(find_root(Path(given.conf)), given.env, dict(given.value))
    only = given.step or [
        step.name for step in runner.select_steps(bundle, given.pipeline, ()) if layer in (None, step.layer)
    ]
    if not only:
        raise ConfigurationError(f"pipeline {given.pipeline!r} has no {layer} step", fix="call `run`, or another layer")
    short = runner.is_short(bundle, given.pipeline, only, follow=False, once=False)
    static_checks.require_functions(bundle)
    with (
        runner.announce_run(bundle, given.pipeline, watch=_print_event) as announced,
        session.bundle_session(bundle, name=given.pipeline, short=short, record=short) as spark,
    ):
        runner.run(spark, bundle, given.pipeline, announced=announced, only=only)


def _print_event(event: Event) -> None:
    """Print what a job's log should show: batches and warnings."""
    from headrace.runtime.events import format_batch

    if event.what == "batch":
        print(format_batch(event))
    elif event.what == "warning":
        print(f"Warning: {event.step}: {event.message}")


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form name=value")
    return name, value


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = _Arguments(prog="headrace job", add_help=False)
    parser.add_argument("--pipeline", required=True)
    parser.add_argument("--env", required=True)
    parser.add_argument("--conf", default=".")
    parser.add_argument("--step", action="append", default=[])
    parser.add_argument("--value", action="append", default=[], metavar="NAME=VALUE", type=_pair)
    return parser.parse_args(argv)
