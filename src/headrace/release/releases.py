"""Build and verify releases. A release is a directory that is named by the hash of its content.

dist/releases/<id>/
    wheels/             the bundle's own wheel and those in vendor/
    requirements.txt    the bundle's runtime.lock: all other packages, with hashes
    conf/ resources/ databricks.yml
    manifest.json       the hashes of the files, the commit and the version of Headrace; not part of the hash
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from headrace import __version__
from headrace.errors import ConfigurationError, DataError, Problem
from headrace.graph.static_checks import check_files
from headrace.release import packing, wheels

COPIED = ("conf", "resources", "databricks.yml")
LOCK, REQUIREMENTS, MANIFEST = "runtime.lock", "requirements.txt", "manifest.json"
PROJECT = "pyproject.toml"
CURRENT = ".release.json"  # in dist: the hash of the tree that the last release was built from
ID_LENGTH = 12
BUILD_VERSION = 2  # incremented when a release packs other files of the same tree, so that it is built again
Confirm = Callable[[Sequence[str]], bool]


@dataclass(frozen=True)
class Manifest:
    """The files of a release, and what they were built from."""

    id: str
    files: dict[str, str]  # path -> sha256
    headrace: str
    commit: str = ""
    dirty: bool = False
    signatures: dict[str, Any] = field(default_factory=dict)  # of the steps; reserved, always empty

    @property
    def wheels(self) -> tuple[str, ...]:
        """The paths of the wheels."""
        return tuple(path for path in self.files if path.startswith("wheels/"))

    def to_json(self) -> str:
        """Return the content of manifest.json."""
        return json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Parse the content of manifest.json."""
        return cls(**json.loads(text))


@dataclass(frozen=True)
class Release:
    """A release on the local disk."""

    directory: Path
    manifest: Manifest

    @property
    def id(self) -> str:
        """The hash of the content."""
        return self.manifest.id


def reject_credentials(credentials: Sequence[str]) -> bool:
    """Return False: a caller that cannot ask the user packs no file that looks like a credential."""
    return False


def build(root: Path, *, allowed: Collection[str] = (), confirm: Confirm = reject_credentials) -> Release:
    """Build the release of the working tree. If one with the same content exists, return that one.

    Files that look like a credential are packed only if they are in `allowed`, or `confirm` returns true for them.
    """
    _require_lock(root)
    own = _own_files(root)
    parent = root / "dist" / "releases"
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=parent) as temporary:
        content = Path(temporary) / "content"
        (content / "wheels").mkdir(parents=True)
        wheel = wheels.build_wheel(root, Path(temporary))
        _require_allowed(root, [*own, *wheel.sources], allowed, confirm)
        wheels.name_after_content(wheel.file, content / "wheels")
        for vendored in _vendored(root):
            shutil.copyfile(vendored, content / "wheels" / vendored.name)
        shutil.copyfile(root / LOCK, content / REQUIREMENTS)
        for name in COPIED:
            _copy(root / name, content / name)
        files = file_hashes(content)
        commit, dirty = _commit(root)
        manifest = Manifest(_id(files), files, __version__, commit, dirty)
        (content / MANIFEST).write_text(manifest.to_json())
        directory = parent / manifest.id
        if directory.exists():  # replace the manifest: the same content may have been committed since
            (content / MANIFEST).replace(directory / MANIFEST)
        else:
            content.rename(directory)
    return Release(directory, manifest)


def current(root: Path, *, allowed: Collection[str] = (), confirm: Confirm = reject_credentials) -> Release:
    """Return the release of the working tree; build it unless the last release was built from exactly this tree."""
    stamp, tree = root / "dist" / CURRENT, _tree_hash(root)
    with suppress(OSError, ValueError):
        last = json.loads(stamp.read_text())
        matches = [release for release in list_releases(root) if tree and last == {"tree": tree, "id": release.id}]
        if matches and not verify(matches[0]):
            return matches[0]
    _own_files(root)  # raises for a link out of the bundle before its target is read as configuration
    problems = check_files(root).problems
    if problems:
        raise ConfigurationError.of(problems)
    built = build(root, allowed=allowed, confirm=confirm)
    stamp.write_text(json.dumps({"tree": tree, "id": built.id}))
    return built


def find(root: Path, release_id: str) -> Release:
    """Return the release with that id, which may be shortened; raise ConfigurationError unless there is exactly one."""
    built = list_releases(root)
    matches = [release for release in built if release.id.startswith(release_id)] if release_id else []
    if len(matches) == 1:
        return matches[0]
    message = f"several releases begin with {release_id!r}" if matches else f"there is no release {release_id!r}"
    known = ", ".join(release.id for release in matches or built)
    fix = f"use one of: {known}" if known else "build one: headrace build"
    raise ConfigurationError(message, where=str(root / "dist" / "releases"), fix=fix)


def verify(release: Release) -> list[Problem]:
    """Compare the files with the manifest, and the manifest with the id; return what differs."""
    actual, expected = file_hashes(release.directory), release.manifest.files
    problems = []
    fix = "delete the directory and build the release again from its commit"
    for path in sorted(actual.keys() | expected.keys()):
        if actual.get(path) != expected.get(path):
            change = "is missing" if path not in actual else "was added" if path not in expected else "was changed"
            problems.append(Problem(str(release.directory / path), f"release {release.id}: {path} {change}", fix))
    if _id(expected) != release.id or release.directory.name != release.id:
        problems.append(
            Problem(str(release.directory / MANIFEST), f"release {release.id}: the manifest does not match the id", fix)
        )
    return problems


def require_intact(release: Release) -> None:
    """Raise DataError if the files of the release differ from its manifest."""
    problems = verify(release)
    if problems:
        raise DataError.of(problems)


def file_hashes(directory: Path) -> dict[str, str]:
    """Return path -> sha256 of all files but the manifest."""
    return {path: hashlib.sha256((directory / path).read_bytes()).hexdigest() for path in _paths(directory)}


def _id(files: dict[str, str]) -> str:
    lines = "".join(f"{digest}  {path}\n" for path, digest in sorted(files.items()))
    return hashlib.sha256(lines.encode()).hexdigest()[:ID_LENGTH]


def _paths(directory: Path) -> Iterator[str]:
    for file in sorted(directory.rglob("*")):
        path = file.relative_to(directory).as_posix()
        if file.is_file() and path != MANIFEST:
            yield path


def list_releases(root: Path) -> list[Release]:
    """Return all releases that are built."""
    manifests = sorted((root / "dist" / "releases").glob(f"[!.]*/{MANIFEST}"))
    return [Release(file.parent, Manifest.from_json(file.read_text())) for file in manifests]


def _require_lock(root: Path) -> None:
    if not (root / LOCK).is_file():
        raise ConfigurationError(
            f"the bundle has no {LOCK}",
            where=str(root / LOCK),
            fix=f"lock the packages that the platform does not provide: uv pip compile pyproject.toml "
            f"--generate-hashes --no-emit-index-url -o {LOCK}",
        )


def _own_files(root: Path) -> list[str]:
    """Return the files that a release copies, without wheels. Raise ConfigurationError for bad links."""
    packing.list_files(root, (file.relative_to(root).as_posix() for file in _vendored(root)))
    return packing.list_files(root, (*COPIED, LOCK, PROJECT))


def _vendored(root: Path) -> list[Path]:
    return [file for file in sorted((root / "vendor").glob("*.whl")) if not packing.is_hidden(file.name)]


def _require_allowed(root: Path, paths: Sequence[str], allowed: Collection[str], confirm: Confirm) -> None:
    accepted = {os.path.relpath(root / path, root) for path in allowed}
    credentials = [path for path in packing.find_credentials(root, paths) if path not in accepted]
    if credentials and not confirm(credentials):
        packing.require_allowed(root, credentials)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(".*", packing.CACHE))
    elif source.is_file():
        shutil.copyfile(source, target)


def _commit(root: Path) -> tuple[str, bool]:
    """Return the commit that is checked out, and whether the bundle has uncommitted changes."""
    commit = _git(root, "rev-parse", "HEAD").strip()
    return commit, not commit or bool(_git(root, "status", "--porcelain", "--", ".").strip())


def _tree_hash(root: Path) -> str:
    """Return a hash of everything that a release is built from.

    Outside of git return an empty string, as it is not known which files belong to the tree.
    """
    paths = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ".")
    if not paths:
        return ""
    files = {root / path for path in paths.split("\0") if path}
    files |= {file for name in (*COPIED, "vendor") for file in (root / name).rglob("*")} | {root / COPIED[-1]}
    digest = hashlib.sha256(repr((__version__, BUILD_VERSION, sys.version_info, _commit(root))).encode())
    for file in sorted(files):
        if file.is_symlink():  # a link to a directory packs the files in it
            digest.update(f"{file.relative_to(root)} -> {file.readlink()}\n".encode())
        if file.is_file():
            digest.update(f"{file.relative_to(root)}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _git(root: Path, *arguments: str) -> str:
    process = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    return process.stdout if process.returncode == 0 else ""
