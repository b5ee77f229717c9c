"""`headrace doctor`: what this machine has, and what it lacks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import shared_options

if TYPE_CHECKING:
    from headrace.config.models import Environment
    from headrace.observe.doctor import Finding


@click.command
@shared_options.environment()
@shared_options.values
@shared_options.root
@shared_options.facts
def doctor(environment: str, values: dict[str, str], start: Path, as_json: bool) -> None:
    """Say what this machine lacks."""
    from headrace.observe.doctor import examine

    bundle, loaded = _bundle(start, environment, values)
    findings = (bundle, *examine(loaded))
    healthy = all(finding.ok for finding in findings)
    click.echo(_as_json(findings, ok=healthy) if as_json else "\n".join(map(_as_text, findings)))
    if not healthy:
        raise SystemExit(1)


def _bundle(start: Path, environment: str, values: dict[str, str]) -> tuple[Finding, Environment | None]:
    from headrace.config.load import find_root, load_bundle
    from headrace.errors import ConfigurationError
    from headrace.observe.doctor import Finding

    try:
        root = find_root(start)
    except ConfigurationError:
        return Finding("bundle", True, "none here: a local run with default settings is looked at"), None
    try:
        loaded = load_bundle(root, environment, values, lenient=True).environment
    except ConfigurationError as error:
        first = error.problems[0]
        more = f" (headrace check names {len(error.problems) - 1} more)" if len(error.problems) > 1 else ""
        return Finding("bundle", False, f"{first.where}: {first.message}{more}", first.fix), None
    return Finding("bundle", True, f"{root}, environment {environment}"), loaded


def _as_text(finding: Finding) -> str:
    line = f"{'ok ' if finding.ok else 'BAD'}  {finding.name:<11}  {finding.finding}"
    return line if finding.ok else f"{line}\n{'':18}fix: {finding.fix}"


def _as_json(findings: tuple[Finding, ...], *, ok: bool) -> str:
    import json

    return json.dumps({"ok": ok, "findings": [vars(finding) for finding in findings]}, indent=2)
