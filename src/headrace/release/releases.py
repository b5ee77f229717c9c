"""Build and verify releases. A release is a directory that is named after the hash of its content.

dist/releases/<id>/
    wheels/             the bundle's own wheel and the wheels in vendor/
    requirements.txt    the bundle's runtime.lock: all other packages, with hashes
    conf/ resources/ databricks.yml
    manifest.json       the hashes of the other files, the commit, the version of Headrace, and the signatures of the
                        steps; not hashed itself
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from headrace import __version__
from headrace.errors import ConfigurationError, DataError, Problem
from headrace.graph.static_checks import check_files
from headrace.release import packing, wheels, working_tree
from headrace.release.manifest import MANIFEST, Manifest

COPIED = ("conf", "resources", "databricks.yml")
VENDORED = "vendor"
LOCK, REQUIREMENTS = "runtime.lock", "requirements.txt"  # LOCK is copied as REQUIREMENTS
PROJECT = "pyproject.toml"
CURRENT = ".release.json"  # in dist: the id of the last release, and the hash of the tree that it was built from
ID_LENGTH = 12  # characters
BUILD_VERSION = 3  # increment it when a build of the same tree packs other files, so that `current` builds again
Confirm = Callable[[Sequence[str]], bool]  # whether to pack these files, which look like credentials; asks the user


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
    """Return False. This is the default of `confirm`, for callers that cannot ask the user."""
    return False


def build(root: Path, *, allowed: Collection[str] = (), confirm: Confirm = reject_credentials) -> Release:
    """Build the release of the working tree. If a release with the same content exists, replace only its manifest.

    `allowed` are paths relative to the bundle. Raise ConfigurationError for files that look like a credential, unless
    `allowed` contains them or `confirm` returns True for them.
    """
    _require_lock(root)
    ignored = set(left_out(root))
    copied = [path for path in _copied_files(root) if path not in ignored]
    releases = root / "dist" / "releases"
    releases.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=releases) as temporary:
        content = Path(temporary) / "content"
        (content / "wheels").mkdir(parents=True)
        wheel = wheels.build_wheel(root, Path(temporary))
        _require_allowed(root, [*copied, *wheel.sources], allowed, confirm)
        wheels.copy_with_content_hash(wheel.file, content / "wheels")
        for vendored in _vendored_wheels(root):
            shutil.copyfile(vendored, content / "wheels" / vendored.name)
        shutil.copyfile(root / LOCK, content / REQUIREMENTS)
        for path in copied:
            if path.partition("/")[0] in COPIED:
                (content / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(root / path, content / path)
        files = file_hashes(content)
        commit, dirty = working_tree.commit(root)
        manifest = Manifest(_release_id(files), files, __version__, commit, dirty, heartbeats=True)
        (content / MANIFEST).write_text(manifest.to_json())
        directory = releases / manifest.id
        if directory.exists():  # the commit in the manifest may have changed
            with suppress(OSError, ValueError, TypeError):
                stored = Manifest.from_json((directory / MANIFEST).read_text())
                manifest = replace(manifest, signatures=stored.signatures)
            (content / MANIFEST).write_text(manifest.to_json())
            (content / MANIFEST).replace(directory / MANIFEST)
        else:
            content.rename(directory)
    return Release(directory, manifest)


def current(root: Path, *, allowed: Collection[str] = (), confirm: Confirm = reject_credentials) -> Release:
    """Return the release of the working tree.

    Build it unless the last release was built from exactly this tree and is intact. Outside of git, always build it.
    See `build` for `allowed` and `confirm`.
    """
    stamp_file, builder = root / "dist" / CURRENT, (__version__, BUILD_VERSION, sys.version_info)
    tree_hash = working_tree.content_hash(root, packed=(*COPIED, VENDORED), builder=builder)
    with suppress(OSError, ValueError):
        last = json.loads(stamp_file.read_text())
        matches = [
            release for release in list_releases(root) if tree_hash and last == {"tree": tree_hash, "id": release.id}
        ]
        is_intact = bool(matches) and not verify(matches[0])
        if is_intact:
            return matches[0]
    _copied_files(root)  # raises for a link out of the bundle before its target is read as configuration
    problems = check_files(root).problems
    if problems:
        raise ConfigurationError.of(problems)
    built = build(root, allowed=allowed, confirm=confirm)
    stamp_file.write_text(json.dumps({"tree": tree_hash, "id": built.id}))
    return built


def left_out(root: Path) -> list[str]:
    """Return the configuration files that a release does not pack because git ignores them."""
    return packing.left_out(root, COPIED)


def find(root: Path, release_id: str) -> Release:
    """Return the release whose id is or begins with `release_id`.

    Raise ConfigurationError unless there is exactly one such release.
    """
    built = list_releases(root)
    matches = [release for release in built if release.id.startswith(release_id)] if release_id else []
    if len(matches) == 1:
        return matches[0]
    message = f"several releases begin with {release_id!r}" if matches else f"there is no release {release_id!r}"
    known = ", ".join(release.id for release in matches or built)
    fix = f"use one of: {known}" if known else "build one: headrace build"
    raise ConfigurationError(message, where=str(root / "dist" / "releases"), fix=fix)


def verify(release: Release) -> list[Problem]:
    """Return a problem for each file that differs from the manifest, and one if the manifest differs from the id."""
    actual, expected = file_hashes(release.directory), release.manifest.files
    problems = []
    fix = "delete the directory and build the release again from its commit"
    for path in sorted(actual.keys() | expected.keys()):
        if actual.get(path) != expected.get(path):
            if path not in actual:
                change = "is missing"
            elif path not in expected:
                change = "was added"
            else:
                change = "was changed"
            problems.append(Problem(str(release.directory / path), f"release {release.id}: {path} {change}", fix))
    if _release_id(expected) != release.id or release.directory.name != release.id:
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
    """Return path -> sha256 of all files in a release except the manifest."""
    return {path: hashlib.sha256((directory / path).read_bytes()).hexdigest() for path in _hashed_paths(directory)}


def _release_id(files: dict[str, str]) -> str:
    """Return the id of a release with these files: the first characters of a hash of their hashes and paths."""
    lines = "".join(f"{digest}  {path}\n" for path, digest in sorted(files.items()))
    return hashlib.sha256(lines.encode()).hexdigest()[:ID_LENGTH]


def _hashed_paths(directory: Path) -> Iterator[str]:
    for file in sorted(directory.rglob("*")):
        path = file.relative_to(directory).as_posix()
        if file.is_file() and path != MANIFEST:
            yield path


def list_releases(root: Path) -> list[Release]:
    """Return all releases in the bundle's dist directory, except those whose manifest cannot be read."""
    releases = []
    for file in sorted((root / "dist" / "releases").glob(f"[!.]*/{MANIFEST}")):
        with suppress(ValueError, TypeError):
            releases.append(Release(file.parent, Manifest.from_json(file.read_text())))
    return releases


def _require_lock(root: Path) -> None:
    if not (root / LOCK).is_file():
        raise ConfigurationError(
            f"the bundle has no {LOCK}",
            where=str(root / LOCK),
            fix=f"lock the packages that the platform does not provide: uv pip compile pyproject.toml "
            f"--generate-hashes --no-emit-index-url -o {LOCK}",
        )


def _copied_files(root: Path) -> list[str]:
    """Return the paths of the files that a release copies, except the wheels in vendor/, and of pyproject.toml.

    Raise ConfigurationError if one of these files, or a wheel in vendor/, is a link that cannot be packed, or if git
    ignores such a wheel.
    """
    vendored = [wheel.relative_to(root).as_posix() for wheel in _vendored_wheels(root)]
    packing.list_files(root, vendored)
    packing.require_not_ignored(root, vendored)
    return packing.list_files(root, (*COPIED, LOCK, PROJECT))


def _vendored_wheels(root: Path) -> list[Path]:
    return [file for file in sorted((root / VENDORED).glob("*.whl")) if not packing.is_hidden(file.name)]


def _require_allowed(root: Path, paths: Sequence[str], allowed: Collection[str], confirm: Confirm) -> None:
    """Raise ConfigurationError for paths that look like a credential and are neither allowed nor confirmed."""
    accepted = {os.path.relpath(root / path, root) for path in allowed}  # such as `a/b` for `./a/b`
    credentials = [path for path in packing.find_credentials(root, paths) if path not in accepted]
    if credentials and not confirm(credentials):
        packing.raise_for_credentials(root, credentials)
