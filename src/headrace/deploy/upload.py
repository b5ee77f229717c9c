"""Upload releases to an environment and download them, and verify their files against the manifest."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Set
from pathlib import Path, PurePosixPath

from headrace.deploy.deploy_lock import Report
from headrace.deploy.deploy_target import DeployTarget
from headrace.deploy.remote import UNKNOWN_SIZE
from headrace.errors import DataError, DeploymentError, one_line
from headrace.release import releases
from headrace.release.manifest import MANIFEST, Manifest
from headrace.release.releases import Release


def damaged_files(release: Release, target: DeployTarget) -> list[str]:
    """Return the files of an uploaded release that are missing or have another size; all files without its manifest."""
    sizes = target.remote.file_sizes(target.release_path(release.id))
    if MANIFEST not in sizes:
        return sorted(release.manifest.files)
    expected = {path: (release.directory / path).stat().st_size for path in release.manifest.files}
    return sorted(path for path, size in expected.items() if sizes.get(path) not in (size, UNKNOWN_SIZE))


def upload_release(release: Release, target: DeployTarget, report: Report) -> None:
    """Upload the files of the release that are not uploaded yet, verify them, then upload its manifest.

    The manifest is the last file, so that a release with a manifest is complete.
    """
    remote, directory = target.remote, target.release_path(release.id)
    files = damaged_files(release, target)
    if not files:
        return
    report(f"release {release.id}: uploading {len(files)} files …")
    parents = {str(PurePosixPath(directory, path).parent) for path in files}
    for parent in sorted(parents):
        if not any(other.startswith(f"{parent}/") for other in parents):  # creating a directory creates its parents
            remote.make_directory(parent)
    for path in files:
        remote.write_file(f"{directory}/{path}", (release.directory / path).read_bytes())
    for path in files:
        if _sha256(remote.read_file(f"{directory}/{path}")) != release.manifest.files[path]:
            raise DeploymentError(
                f"release {release.id}: {path} differs from the file that was uploaded",
                where=f"{remote.name}: {directory}",
                fix="run the same command again; if the error remains, find out who else writes to this directory",
            )
    remote.write_file(f"{directory}/{MANIFEST}", release.manifest.to_json().encode())


def read_manifest(release_id: str, target: DeployTarget) -> Manifest | None:
    """Return the manifest of an uploaded release; None if the id is empty, or the release is missing or incomplete.

    Raise DataError if the manifest cannot be read.
    """
    path = f"{target.release_path(release_id)}/{MANIFEST}"
    content = target.remote.read_file(path) if release_id else None
    try:
        return None if content is None else Manifest.from_json(content.decode())
    except (ValueError, TypeError) as error:
        raise DataError(
            f"the manifest of release {release_id} cannot be read: {one_line(error)}",
            where=f"{target.remote.name}: {path}",
            fix="use the version of Headrace that built the release, or a newer one; if the file is damaged, delete it "
            "and deploy the release again",
        ) from error


def fetch_release(release_id: str, target: DeployTarget, root: Path, report: Report) -> Release:
    """Return the release in dist/releases of the bundle at `root`; download it first if it is missing or not intact.

    Raise DataError if the environment does not have the release, or if the downloaded files differ from the manifest.
    """
    parent = root / "dist" / "releases"
    local = next((release for release in releases.list_releases(root) if release.id == release_id), None)
    if local is not None and not releases.verify(local):
        return local
    manifest = read_manifest(release_id, target)
    if manifest is None:
        raise DataError(
            f"release {release_id} is no longer in environment {target.name!r}",
            where=f"{target.remote.name}: {target.release_path(release_id)}",
            fix="check out its commit (see `headrace history`), and run `headrace deploy` there",
        )
    report(f"release {release_id}: downloading {len(manifest.files)} files from {target.name} …")
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=parent) as temporary:
        fetched = Release(Path(temporary) / release_id, manifest)
        for path in manifest.files:
            content = target.remote.read_file(f"{target.release_path(release_id)}/{path}")
            file = fetched.directory / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content or b"")  # `require_intact` reports a file that is missing
        (fetched.directory / MANIFEST).write_text(manifest.to_json())
        releases.require_intact(fetched)
        if local is not None:
            shutil.rmtree(local.directory)
        fetched.directory.rename(parent / release_id)
    return Release(parent / release_id, manifest)


def delete_releases(target: DeployTarget, release_ids: Set[str]) -> list[str]:
    """Delete these releases from the environment and return their ids, sorted."""
    for release_id in sorted(release_ids):
        # The manifest is deleted first, so that a partly deleted release does not count as complete.
        target.remote.delete(f"{target.release_path(release_id)}/{MANIFEST}")
        target.remote.delete(target.release_path(release_id))
    return sorted(release_ids)


def _sha256(content: bytes | None) -> str:
    return hashlib.sha256(content or b"").hexdigest()
