"""Compute the signatures of a release's steps in a child process, because this package does not import Spark.

The manifest's `signatures` has the `versions` that computed them, and the child's report: see
`runtime.release_signatures`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

from headrace import __version__
from headrace.release.manifest import MANIFEST
from headrace.release.releases import Release

CHILD = "headrace.runtime.release_signatures"
TIMEOUT_S = 300.0


def add_signatures(release: Release, root: Path, *, on_start: Callable[[], None] = lambda: None) -> Release:
    """Return the release with the signatures of its steps, and store them in its manifest.

    Do not compute them again if the same versions of Headrace, Spark and Python have computed them. `root` is the
    directory of the bundle from whose current files the release was built. `on_start` is called before the computation.
    """
    stored, versions = release.manifest.signatures, _versions()
    if "environments" in stored and stored.get("versions") == versions:
        return release
    on_start()
    manifest = replace(release.manifest, signatures={"versions": versions, **_compute(root)})
    temporary = release.directory.with_name(f".{release.id}-{MANIFEST}")
    temporary.write_text(manifest.to_json())
    temporary.replace(release.directory / MANIFEST)
    return replace(release, manifest=manifest)


def _compute(root: Path) -> dict[str, Any]:
    """Return the child's report: `environments`, or `not_computed` with the reason."""
    command = [sys.executable, "-P", "-m", CHILD, str(root)]
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return {"not_computed": f"the computation did not end within {TIMEOUT_S:g} s"}
    last_line = child.stdout.strip().rpartition("\n")[2]  # user code may print lines before
    if child.returncode == 0 and last_line.startswith("{"):
        report: dict[str, Any] = json.loads(last_line)
        return report
    last_error = child.stderr.strip().rpartition("\n")[2] or f"its exit code is {child.returncode}"
    return {"not_computed": f"the computation failed: {last_error}"}


def _versions() -> dict[str, str]:
    """Return the versions on which signatures depend. Spark's is that of the installed package; empty without one."""
    try:
        spark = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        spark = ""
    return {"headrace": __version__, "spark": spark, "python": "{}.{}".format(*sys.version_info)}
