"""The working tree that a release is built from: its commit, and a hash of its content."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable
from pathlib import Path

MAX_COMMITS = 20


def commit(root: Path) -> tuple[str, bool]:
    """Return the commit that is checked out, and whether the bundle differs from it.

    Without a commit, such as outside of git, the bundle counts as different.
    """
    head = _git(root, "rev-parse", "HEAD").strip()
    changes = _git(root, "status", "--porcelain", "--", ".").strip()
    return head, not head or bool(changes)


def commits_between(root: Path, old: str, new: str) -> tuple[str, ...]:
    """Return the commits of the bundle from `old` to `new`, the newest first, as hash and subject; at most MAX_COMMITS.

    Return none if git does not know both commits.
    """
    if not old or not new or old == new:
        return ()
    options = ("--format=%h %s", f"--max-count={MAX_COMMITS}")
    return tuple(_git(root, "log", *options, f"{old}..{new}", "--", ".").splitlines())


def ignored_files(root: Path, names: Iterable[str]) -> set[str]:
    """Return the files that git ignores, among files and directories of the bundle; none outside of git."""
    paths = _git(root, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", *names)
    return {path for path in paths.split("\0") if path}


def content_hash(root: Path, *, packed: Iterable[str], builder: tuple[object, ...]) -> str:
    """Return a hash of everything that a release is built from: the files, the commit and `builder`.

    `builder` has the versions of the programs that build the release. `packed` has the files and directories whose
    content counts even if git ignores it. Return an empty string outside of git, because only git can list the other
    files that belong to the tree.
    """
    paths = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ".")
    if not paths:
        return ""
    files = {root / path for path in paths.split("\0") if path}
    for name in packed:
        path = root / name
        files |= set(path.rglob("*")) if path.is_dir() else {path}
    digest = hashlib.sha256(repr((*builder, commit(root))).encode())
    for file in sorted(files):
        if file.is_symlink():  # the files in a linked directory are packed, so the target of the link matters
            digest.update(f"{file.relative_to(root)} -> {file.readlink()}\n".encode())
        if file.is_file():
            digest.update(f"{file.relative_to(root)}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _git(root: Path, *arguments: str) -> str:
    """Return the output of a git command in the bundle, or an empty string if the command fails."""
    process = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    return process.stdout if process.returncode == 0 else ""
