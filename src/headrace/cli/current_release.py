"""The release of the working tree, with the signatures of its steps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli import confirmation

if TYPE_CHECKING:
    from headrace.release.releases import Release


def current_release(root: Path, allowed_files: tuple[str, ...]) -> Release:
    """Return the release of the working tree; build it, and compute the signatures of its steps, unless this is done.

    `allowed_files` are packed although they look like a credential. Messages go to stderr, so that JSON on stdout stays
    valid.
    """
    from headrace.release import releases, signature_process

    release = releases.current(root, allowed=allowed_files, confirm=confirmation.confirm_credentials)
    for path in releases.left_out(root):
        click.echo(f"not packed, because git ignores it: {path}", err=True)
    release = signature_process.add_signatures(
        release, root, on_start=lambda: click.echo("computing the signatures of the steps …", err=True)
    )
    if reason := release.manifest.signatures.get("not_computed"):
        click.echo(f"signatures not computed: {reason}", err=True)
    return release
