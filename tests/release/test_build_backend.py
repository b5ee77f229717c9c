"""The child process of a wheel: what it reports to have been read, and what it refuses to read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BACKEND = """\
import pathlib, sys

def build_wheel(directory):
    for name in pathlib.Path("list").read_text().split():
        pathlib.Path(name).read_bytes()
    pathlib.Path("written").write_text("")
    print("a word of the backend")
    return "tiny.whl"
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    (root / "reader.py").write_text(BACKEND)
    (root / "a").write_text("")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "b").write_text("")
    return root


def build(root: Path, *read: str, code: int = 0) -> dict[str, object]:
    (root / "list").write_text(" ".join(read))
    command = [sys.executable, "-m", "headrace.release.build_backend", "reader", "."]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    report: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return report


def test_files_of_the_bundle_that_were_read_are_reported(root: Path) -> None:
    (root / ".hidden").write_text("")
    (root / "link").symlink_to("a")
    report = build(root, "a", ".hidden", "link", "../outside/b", str(root / "a"))
    assert report == {"name": "tiny.whl", "read": ["a", "link", "list", "reader.py"], "refused": ""}


@pytest.mark.parametrize(("link", "target", "path"), [("b", "../outside/b", "b"), ("d", "../outside", "d/b")])
def test_a_link_out_of_the_bundle_is_not_read(root: Path, link: str, target: str, path: str) -> None:
    (root / link).symlink_to(target)
    assert build(root, "a")["refused"] == ""
    assert build(root, "a", path, code=1)["refused"] == path


def test_a_hidden_link_is_read_because_it_is_not_packed(root: Path) -> None:
    (root / ".b").symlink_to("../outside/b")
    assert build(root, ".b")["refused"] == ""
