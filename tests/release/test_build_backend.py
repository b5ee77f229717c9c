"""Test the child process that builds a wheel: the files that it reports, the links that it does not follow."""

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
    print("output of the backend")
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
    process = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert process.returncode == code, process.stderr
    report: dict[str, object] = json.loads(process.stdout.splitlines()[-1])
    return report


def test_read_files_of_the_bundle_are_reported(root: Path) -> None:
    (root / ".hidden").write_text("")
    (root / "link").symlink_to("a")
    report = build(root, "a", ".hidden", "link", "../outside/b", str(root / "a"))
    assert report == {"name": "tiny.whl", "read": ["a", "link", "list", "reader.py"], "external_link": ""}


@pytest.mark.parametrize(("link", "target", "path"), [("b", "../outside/b", "b"), ("d", "../outside", "d/b")])
def test_link_out_of_the_bundle_is_not_read(root: Path, link: str, target: str, path: str) -> None:
    (root / link).symlink_to(target)
    assert build(root, "a")["external_link"] == ""
    assert build(root, "a", path, code=1)["external_link"] == path


def test_hidden_link_may_be_read_because_it_is_not_packed(root: Path) -> None:
    (root / ".b").symlink_to("../outside/b")
    assert build(root, ".b")["external_link"] == ""
