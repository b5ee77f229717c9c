"""`headrace build`: a release from the tree, or an old one checked byte by byte."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import confirmation, shared_options

if TYPE_CHECKING:
    from headrace.release.releases import Release


@click.command()
@click.option("--check", "checked", metavar="ID", help="Build nothing; verify every byte of that release.")
@shared_options.allow_file
@shared_options.root
@shared_options.facts
def build(checked: str | None, allowed: tuple[str, ...], start: Path, as_json: bool) -> None:
    """Build a release.

    It holds the bundle's wheel, the requirements, conf, resources and databricks.yml, under dist/releases, named by
    the hash of its content: the same tree gives the same release. Hidden files are left out. A link that leads out of
    the bundle is refused. Files that look like a credential (*.pem, *.key, and data files named cred* or *secret*) are
    packed only if you confirm it, or name them with --allow-file.
    """
    from headrace.config.load import find_root
    from headrace.release import releases

    root = find_root(start)
    if checked is not None:
        found = releases.find(root, checked)
        releases.require_whole(found)
    else:
        found = releases.current(root, allowed=allowed, confirm=confirmation.may_pack)
    if as_json:
        click.echo(json.dumps({**asdict(found.manifest), "directory": str(found.directory)}, indent=2))
        return
    click.echo(f"release {found.id}{'' if checked is None else ': every byte is as it was built'}")
    for line in _lines(found, root):
        click.echo(f"  {line}")


def _lines(found: Release, root: Path) -> list[str]:
    manifest = found.manifest
    where = found.directory.relative_to(root) if found.directory.is_relative_to(root) else found.directory
    tree = (
        "outside of git"
        if not manifest.commit
        else manifest.commit[:12] + (", changed since" if manifest.dirty else "")
    )
    return [
        f"in     {where}",
        f"from   {tree}",
        f"files  {len(manifest.files)}",
        *(f"wheel  {Path(path).name}" for path in manifest.wheels),
    ]
