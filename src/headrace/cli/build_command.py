"""`headrace build`: build a release, or verify the files of an existing one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import shared_options
from headrace.cli.current_release import current_release
from headrace.cli.help_examples import examples

if TYPE_CHECKING:
    from headrace.release.manifest import Manifest
    from headrace.release.releases import Release


@click.command(epilog=examples("headrace build", "headrace build --check 3f2a"))
@click.option(
    "--check",
    "release_id",
    metavar="ID",
    help="Build nothing; verify every byte of the release whose id begins with ID.",
)
@shared_options.allow_file
@shared_options.bundle_dir
@shared_options.output_format
def build(release_id: str | None, allowed_files: tuple[str, ...], bundle_dir: Path, as_json: bool) -> None:
    """Build a release.

    A release is a directory under dist/releases with the bundle's wheel, its requirements, conf, resources and
    databricks.yml. Its name is the hash of its content, so the same files give the same release. Hidden files, and
    files that git ignores, are left out. A link that leads out of the bundle is an error. Files that look like a
    credential (*.pem, *.key, and data files named cred* or *secret*) are packed only after a confirmation, or if
    --allow-file names them.

    The release's manifest gets the signatures of the steps: what their queries compute. `headrace plan` compares them.
    Spark is started for this, if the release has no signatures yet.
    """
    from headrace.config.load import find_root
    from headrace.release import releases

    root = find_root(bundle_dir)
    if release_id is not None:
        release = releases.find(root, release_id)
        releases.require_intact(release)
    else:
        release = current_release(root, allowed_files)
    if as_json:
        click.echo(json.dumps({**asdict(release.manifest), "directory": str(release.directory)}, indent=2))
        return
    verification = "" if release_id is None else ": all files match the manifest"
    click.echo(f"release {release.id}{verification}")
    for line in _describe(release, root):
        click.echo(f"  {line}")


def _describe(release: Release, root: Path) -> list[str]:
    manifest = release.manifest
    directory = release.directory
    if directory.is_relative_to(root):
        directory = directory.relative_to(root)
    commit = manifest.commit[:12] or "none"
    if manifest.commit and manifest.dirty:
        commit += ", with uncommitted changes"
    return [
        f"path   {directory}",
        f"commit {commit}",
        f"files  {len(manifest.files)}",
        *(f"wheel  {Path(path).name}" for path in manifest.wheels),
        *_describe_signatures(manifest),
    ]


def _describe_signatures(manifest: Manifest) -> Iterator[str]:
    """Yield the steps with signatures, and for each other step the reason and the environments in which it applies."""
    with_signature = set()
    reasons: dict[str, list[str]] = {}
    for environment, pipelines in manifest.signatures.get("environments", {}).items():
        for pipeline, entries in pipelines.items():
            for step, entry in entries.items():
                if "signature" in entry:
                    with_signature.add(f"{pipeline}/{step}")
                else:
                    reasons.setdefault(f"{pipeline}/{step}: {entry['not_computed']}", []).append(environment)
    if with_signature:
        yield f"signatures of {', '.join(sorted(with_signature))}"
    for reason, environments in reasons.items():
        yield f"no signature of {reason} ({', '.join(environments)})"
