"""Builds a release: wheels, configuration and a manifest in one directory, named by the hash of its content.

dist/releases/<id>/
    wheels/             the bundle's own wheel and those in vendor/, each by its exact name
    requirements.txt    everything else, with hashes: the bundle's runtime.lock
    conf/ resources/ databricks.yml
    manifest.json       the files' hashes and where they came from: beside the hash, not in it
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

CARRIED = ("conf", "resources", "databricks.yml")
LOCK, REQUIREMENTS, MANIFEST = "runtime.lock", "requirements.txt", "manifest.json"
PROJECT = "pyproject.toml"
CURRENT = ".release.json"  # in dist: which tree the last release was built of
DIGITS = 12  # of an id
PACKING = 2  # raised when a release packs other files of the same tree: older ones are then built again
Confirm = Callable[[Sequence[str]], bool]


@dataclass(frozen=True)
class Manifest:
    """What a release holds, and where it came from."""

    id: str
    files: dict[str, str]  # path -> sha256
    headrace: str
    commit: str = ""
    dirty: bool = False
    signatures: dict[str, Any] = field(default_factory=dict)  # of the steps: none is made yet, so none is compared

    @property
    def wheels(self) -> tuple[str, ...]:
        """The paths of its wheels."""
        return tuple(path for path in self.files if path.startswith("wheels/"))

    def text(self) -> str:
        """As it is written down."""
        return json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"

    @classmethod
    def of(cls, text: str) -> Manifest:
        """Read from what was written down."""
        return cls(**json.loads(text))


@dataclass(frozen=True)
class Release:
    """A release on this machine's disk."""

    directory: Path
    manifest: Manifest

    @property
    def id(self) -> str:
        """The hash of its content."""
        return self.manifest.id


def refuse(credentials: Sequence[str]) -> bool:
    """Answer for callers who cannot ask: pack nothing that looks like a credential."""
    return False


def build(root: Path, *, allowed: Collection[str] = (), confirm: Confirm = refuse) -> Release:
    """Build the release of the tree; an existing one with the same content is the same release.

    Files that look like a credential are packed only if they are in `allowed` or `confirm` returns true for them.
    """
    _require_lock(root)
    own = _own_files(root)
    beside = root / "dist" / "releases"
    beside.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=beside) as place:
        content = Path(place) / "content"
        (content / "wheels").mkdir(parents=True)
        wheel = wheels.build_wheel(root, Path(place))
        _require_allowed(root, [*own, *wheel.sources], allowed, confirm)
        wheels.name_after_content(wheel.file, content / "wheels")
        for vendored in _vendored(root):
            shutil.copyfile(vendored, content / "wheels" / vendored.name)
        shutil.copyfile(root / LOCK, content / REQUIREMENTS)
        for name in CARRIED:
            _copy(root / name, content / name)
        files = hashes(content)
        commit, dirty = _commit(root)
        manifest = Manifest(_id(files), files, __version__, commit, dirty)
        (content / MANIFEST).write_text(manifest.text())
        there = beside / manifest.id
        if there.exists():
            _replace_manifest(there, content / MANIFEST)
        else:
            content.rename(there)
    return Release(there, manifest)


def current(root: Path, *, allowed: Collection[str] = (), confirm: Confirm = refuse) -> Release:
    """Return the release of the tree as it is; build it unless the last one was built from exactly this tree."""
    stamp, tree = root / "dist" / CURRENT, _tree(root)
    with suppress(OSError, ValueError):
        told = json.loads(stamp.read_text())
        found = next((one for one in releases(root) if tree and told == {"tree": tree, "id": one.id}), None)
        if found is not None and not verify(found):
            return found
    _own_files(root)  # a link that leads out of the bundle is not to be read as configuration
    problems = check_files(root).problems
    if problems:  # a release of a bundle that cannot run is of no use
        raise ConfigurationError.of(problems)
    built = build(root, allowed=allowed, confirm=confirm)
    stamp.write_text(json.dumps({"tree": tree, "id": built.id}))
    return built


def find(root: Path, release: str) -> Release:
    """The release of that id, or of the only id that begins so."""
    found = [one for one in releases(root) if one.id.startswith(release)] if release else []
    if len(found) == 1:
        return found[0]
    known = ", ".join(one.id for one in releases(root)) or "none is built"
    what = "more than one release begins with" if found else "there is no release"
    raise ConfigurationError(f"{what} {release!r}", where=str(root / "dist" / "releases"), fix=f"known here: {known}")


def verify(release: Release) -> list[Problem]:
    """Every byte against the manifest, and the manifest against its id."""
    there, wanted = hashes(release.directory), release.manifest.files
    problems = []
    fix = "delete the directory and build the release again from its commit"
    for path in sorted(there.keys() | wanted.keys()):
        if there.get(path) != wanted.get(path):
            what = "is missing" if path not in there else "was not in it" if path not in wanted else "was changed"
            problems.append(Problem(str(release.directory / path), f"release {release.id}: {path} {what}", fix))
    if _id(wanted) != release.id or release.directory.name != release.id:
        problems.append(
            Problem(str(release.directory / MANIFEST), f"release {release.id}: its manifest does not give its id", fix)
        )
    return problems


def require_whole(release: Release) -> None:
    """Raises what verify finds."""
    problems = verify(release)
    if problems:
        raise DataError.of(problems)


def hashes(directory: Path) -> dict[str, str]:
    """path -> sha256 of all files but the manifest."""
    return {path: hashlib.sha256((directory / path).read_bytes()).hexdigest() for path in _paths(directory)}


def _id(files: dict[str, str]) -> str:
    listed = "".join(f"{digest}  {path}\n" for path, digest in sorted(files.items()))
    return hashlib.sha256(listed.encode()).hexdigest()[:DIGITS]


def _paths(directory: Path) -> Iterator[str]:
    for file in sorted(directory.rglob("*")):
        path = file.relative_to(directory).as_posix()
        if file.is_file() and path != MANIFEST:
            yield path


def releases(root: Path) -> list[Release]:
    """All that are built."""
    manifests = sorted((root / "dist" / "releases").glob(f"[!.]*/{MANIFEST}"))
    return [Release(file.parent, Manifest.of(file.read_text())) for file in manifests]


def _require_lock(root: Path) -> None:
    if not (root / LOCK).is_file():
        raise ConfigurationError(
            f"the bundle has no {LOCK}",
            where=str(root / LOCK),
            fix=f"write what the jobs need beside the platform, with hashes: uv pip compile pyproject.toml "
            f"--generate-hashes --no-emit-index-url -o {LOCK}",
        )


def _own_files(root: Path) -> list[str]:
    """Return what a release copies from the tree, beside wheels; raise for links that cannot be packed."""
    packing.list_files(root, (file.relative_to(root).as_posix() for file in _vendored(root)))
    return packing.list_files(root, (*CARRIED, LOCK, PROJECT))


def _vendored(root: Path) -> list[Path]:
    return [file for file in sorted((root / "vendor").glob("*.whl")) if not packing.is_hidden(file.name)]


def _require_allowed(root: Path, paths: Sequence[str], allowed: Collection[str], confirm: Confirm) -> None:
    accepted = {os.path.relpath(root / path, root) for path in allowed}
    found = [path for path in packing.find_credentials(root, paths) if path not in accepted]
    if found and not confirm(found):
        packing.require_allowed(root, found)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(".*", packing.CACHE))
    elif source.is_file():
        shutil.copyfile(source, target)


def _replace_manifest(directory: Path, manifest: Path) -> None:
    """The same content may have been committed since."""
    manifest.replace(directory / MANIFEST)


def _commit(root: Path) -> tuple[str, bool]:
    """The commit that is checked out, and whether anything that a release carries was changed since."""
    commit = _git(root, "rev-parse", "HEAD").strip()
    return commit, not commit or bool(_git(root, "status", "--porcelain", "--", ".").strip())


def _tree(root: Path) -> str:
    """One hash of all that a release is built of; empty outside of git, which alone knows what belongs to the tree."""
    listed = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ".")
    if not listed:
        return ""
    files = {root / path for path in listed.split("\0") if path}
    files |= {file for name in (*CARRIED, "vendor") for file in (root / name).rglob("*")} | {root / CARRIED[-1]}
    digest = hashlib.sha256(repr((__version__, PACKING, sys.version_info, _commit(root))).encode())
    for file in sorted(files):
        if file.is_symlink():  # one to a directory packs the files in it
            digest.update(f"{file.relative_to(root)} -> {file.readlink()}\n".encode())
        if file.is_file():
            digest.update(f"{file.relative_to(root)}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""
