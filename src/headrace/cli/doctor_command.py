"""`headrace doctor`: check that this machine has what a run needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import shared_options
from headrace.cli.help_examples import examples

if TYPE_CHECKING:
    from headrace.config.models import Environment
    from headrace.observe.doctor import Finding


@click.command(epilog=examples("headrace doctor", "headrace doctor --env dev"))
@shared_options.environment()
@shared_options.values
@shared_options.bundle_dir
@shared_options.output_format
def doctor(environment: str, values: dict[str, str], bundle_dir: Path, as_json: bool) -> None:
    """Check that this machine has what a run needs.

    Checks what the environment needs: Python, Java, Spark, jars, memory and disk space, or the login to a workspace.
    Outside of a bundle, checks the needs of a local run with default settings.
    """
    from headrace.observe.doctor import examine

    bundle_finding, loaded_environment = _load_environment(bundle_dir, environment, values)
    findings = (bundle_finding, *examine(loaded_environment))
    is_healthy = all(finding.ok for finding in findings)
    click.echo(_as_json(findings, ok=is_healthy) if as_json else "\n".join(map(_as_text, findings)))
    if not is_healthy:
        raise SystemExit(1)


def _load_environment(bundle_dir: Path, environment: str, values: dict[str, str]) -> tuple[Finding, Environment | None]:
    """Return a finding about the bundle, and the environment; None if there is no bundle or it cannot be loaded."""
    from headrace.config.load import find_root, load_bundle
    from headrace.errors import ConfigurationError
    from headrace.observe.doctor import Finding

    try:
        root = find_root(bundle_dir)
    except ConfigurationError:
        return Finding(
            "bundle", True, "no bundle in this directory: checking the needs of a local run with default settings"
        ), None
    try:
        loaded = load_bundle(root, environment, values, lenient=True).environment
    except ConfigurationError as error:
        first, *others = error.problems
        more = f" (`headrace check` lists {len(others)} more)" if others else ""
        return Finding("bundle", False, f"{first.where}: {first.message}{more}", first.fix), None
    return Finding("bundle", True, f"{root}, environment {environment}"), loaded


def _as_text(finding: Finding) -> str:
    line = f"{'ok ' if finding.ok else 'BAD'}  {finding.name:<11}  {finding.finding}"
    return line if finding.ok else f"{line}\n{'':18}fix: {finding.fix}"


def _as_json(findings: tuple[Finding, ...], *, ok: bool) -> str:
    import json

    return json.dumps({"ok": ok, "findings": [vars(finding) for finding in findings]}, indent=2)
