"""Carries a release's bytes to where its jobs read them, and back; each is held against the manifest."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Set
from pathlib import Path, PurePosixPath

from headrace.deploy.deploy_target import Place
from headrace.deploy.state_store import Say
from headrace.errors import DataError, DeploymentError
from headrace.release import releases
from headrace.release.releases import MANIFEST, Manifest, Release


def put(release: Release, place: Place, say: Say) -> None:
    """Lays the release down. The manifest comes last: with it, all is there and was read back."""
    remote, directory = place.remote, place.release(release.id)
    if remote.read(f"{directory}/{MANIFEST}") is not None:
        return
    files = sorted(release.manifest.files)
    say(f"release {release.id}: uploading {len(files)} files …")
    for parent in sorted({str(PurePosixPath(directory, path).parent) for path in files}):
        remote.make_directory(parent)
    for path in files:
        remote.write(f"{directory}/{path}", (release.directory / path).read_bytes())
    for path in files:
        if _sha256(remote.read(f"{directory}/{path}")) != release.manifest.files[path]:
            raise DeploymentError(
                f"release {release.id}: {path} is not what was uploaded",
                where=f"{remote.name}: {directory}",
                fix="run the same command again; if it stays so, see who writes there",
            )
    remote.write(f"{directory}/{MANIFEST}", release.manifest.to_json().encode())


def require_readable(release: Release, place: Place) -> None:
    """Refuses files that could be laid down and not be read back."""
    largest = place.remote.largest
    if largest is None:
        return
    for path in sorted(release.manifest.files):
        size = (release.directory / path).stat().st_size
        if size > largest:
            raise DeploymentError(
                f"release {release.id}: {path} has {size:,} bytes, and a workspace gives back {largest:,} at most",
                where=str(release.directory),
                fix="keep it in a volume, and name it there under the job's libraries",
            )


def manifest(release: str, place: Place) -> Manifest | None:
    """What a release that was laid down holds; None when it is not there to its end."""
    found = place.remote.read(f"{place.release(release)}/{MANIFEST}") if release else None
    return None if found is None else Manifest.from_json(found.decode())


def fetch(release: str, place: Place, root: Path, say: Say) -> Release:
    """The release, byte for byte: from this machine where it is whole, else from where it was laid down."""
    beside = root / "dist" / "releases"
    here = next((one for one in releases.list_releases(root) if one.id == release), None)
    if here is not None and not releases.verify(here):
        return here
    told = manifest(release, place)
    if told is None:
        raise DataError(
            f"release {release} is no longer in environment {place.name!r}",
            where=f"{place.remote.name}: {place.release(release)}",
            fix="build it again from its commit (`headrace history` names it), and deploy that",
        )
    say(f"release {release}: fetching {len(told.files)} files from {place.name} …")
    beside.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=beside) as temporary:
        fetched = Release(Path(temporary) / release, told)
        for path in told.files:
            content = place.remote.read(f"{place.release(release)}/{path}")
            file = fetched.directory / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content or b"")
        (fetched.directory / MANIFEST).write_text(told.to_json())
        releases.require_intact(fetched)
        if here is not None:
            shutil.rmtree(here.directory)
        fetched.directory.rename(beside / release)
    return Release(beside / release, told)


def prune(place: Place, releases: Set[str]) -> list[str]:
    """Deletes those releases; which these were."""
    for release in sorted(releases):
        # Without its manifest a release is not there: what is half deleted is never taken for whole.
        place.remote.delete(f"{place.release(release)}/{MANIFEST}")
        place.remote.delete(place.release(release))
    return sorted(releases)


def _sha256(content: bytes | None) -> str:
    return hashlib.sha256(content or b"").hexdigest()
