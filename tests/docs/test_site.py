"""The documentation site can be built without warnings, and its pages need no other server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Attributes whose value a browser requests when it shows a page.
REQUESTED = re.compile(r"<(?:script|img|link|iframe|source)\b[^>]*\b(?:src|href)=\"(?:https?:)?//([^\"/]+)")


def test_site_is_built_without_network_and_needs_none(tmp_path: Path) -> None:
    no_network = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, **no_network},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 20
    assert {host for page in pages for host in REQUESTED.findall(page.read_text(encoding="utf-8"))} == set()
