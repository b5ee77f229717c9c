"""Build reproducible wheels: the same tree gives the same bytes, and the version contains the hash of the content."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution
from itertools import takewhile
from pathlib import Path
from typing import Any

from headrace.errors import ConfigurationError, SetupError
from headrace.release import packing

SOURCE_DATE_EPOCH = "1580601600"  # 2020-02-02, the time that build backends give to the files in the wheel
INSTALLER_FILES = ("INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_cache.json")  # not part of a wheel


@dataclass(frozen=True)
class BuiltWheel:
    """A wheel, and the files of the bundle that it was built from."""

    file: Path
    sources: tuple[str, ...]  # paths relative to the bundle


def build_wheel(root: Path, into: Path) -> BuiltWheel:
    """Build the wheel of the bundle `root` with the build backend that its pyproject.toml names.

    Write the wheel to the directory `into`. Raise SetupError if the build fails, ConfigurationError if there is no
    pyproject.toml or if the build reads a link out of the bundle.
    """
    project = root / "pyproject.toml"
    if not project.is_file():
        raise ConfigurationError(
            "the bundle has no pyproject.toml", where=str(root), fix="add one: a release contains the bundle's wheel"
        )
    settings = tomllib.loads(project.read_text())
    backend = settings.get("build-system", {}).get("build-backend", "setuptools.build_meta")
    build = subprocess.run(
        [sys.executable, "-m", "headrace.release.build_backend", backend, str(into)],
        cwd=root,
        env={**os.environ, "SOURCE_DATE_EPOCH": SOURCE_DATE_EPOCH, "DIST_EXTRA_CONFIG": str(_setuptools_config(into))},
        capture_output=True,
        text=True,
        check=False,
    )
    report = _parse_report(build.stdout)
    if report["external_link"]:
        packing.list_files(root, [report["external_link"]])  # raises ConfigurationError with the problem of this link
    if build.returncode:
        module = backend.partition(".")[0]
        if f"No module named '{module}'" in build.stderr:
            raise SetupError(f"{backend} is not installed", where=str(project), fix=f"pip install {module}")
        last_line = build.stderr.strip().rpartition("\n")[2] or "the build printed no error"
        raise SetupError(
            f"the wheel cannot be built: {last_line}",
            where=str(project),
            fix="correct pyproject.toml or the files that it names",
        )
    return BuiltWheel(into / report["name"], _sources(into / report["name"], report["read"]))


def copy_with_content_hash(wheel: Path, into: Path) -> Path:
    """Copy the wheel to the directory `into`, without hidden files, and return the path of the copy.

    The hash of the content is added to the version: 1.2.0+g1a2b3c4d.
    """
    name, version, *tags = wheel.stem.split("-")
    if "+" in version:
        raise ConfigurationError(
            f"the version {version} already has a local part",
            where="pyproject.toml",
            fix="remove '+' and what follows it: a release adds '+' and the hash of the content",
        )
    files = {path: content for path, content in _files(wheel) if not packing.is_hidden(path)}
    digest = hashlib.sha256()
    for path, content in sorted(files.items()):
        if not path.endswith(".dist-info/RECORD"):
            digest.update(f"{path}\0{len(content)}\0".encode() + content)
    new_version = f"{version}+g{digest.hexdigest()[:8]}"
    old_info, new_info = f"{name}-{version}.dist-info/", f"{name}-{new_version}.dist-info/"
    renamed = {path.replace(old_info, new_info, 1): content for path, content in files.items()}
    metadata = renamed[f"{new_info}METADATA"].decode()
    metadata = re.sub(r"^Version: .*$", f"Version: {new_version}", metadata, count=1, flags=re.MULTILINE)
    renamed[f"{new_info}METADATA"] = metadata.encode()
    renamed[f"{new_info}RECORD"] = _record(renamed, f"{new_info}RECORD")
    stamped_wheel = into / f"{'-'.join([name, new_version, *tags])}.whl"
    _write(stamped_wheel, renamed)
    return stamped_wheel


def pack_installed(distribution: Distribution, into: Path) -> Path:
    """Pack an installed distribution as a wheel in the directory `into`, and return the path of the wheel."""
    paths = [path for path in distribution.files or () if not {"..", "__pycache__"} & set(path.parts)]
    files = {path.as_posix(): path.read_binary() for path in paths if path.name not in INSTALLER_FILES}
    dist_info = next((path.removesuffix("/WHEEL") for path in files if path.endswith(".dist-info/WHEEL")), None)
    if dist_info is None:
        raise SetupError(
            f"{distribution.metadata['Name']} was installed without a list of its files",
            fix="install it from a wheel, with pip, in a virtual environment",
        )
    tags = [tag.split("-") for tag in re.findall(r"^Tag: (\S+)$", files[f"{dist_info}/WHEEL"].decode(), re.MULTILINE)]
    # py2-none-any and py3-none-any become py2.py3-none-any.
    tag = "-".join(".".join(dict.fromkeys(part)) for part in zip(*tags, strict=True))
    record = f"{dist_info}/RECORD"
    files[record] = _record({**files, record: b""}, record)
    packed = into / f"{dist_info.removesuffix('.dist-info')}-{tag}.whl"
    _write(packed, files)
    return packed


def _setuptools_config(into: Path) -> Path:
    """Write a configuration that moves setuptools' build directory out of the bundle. Return the configuration's path.

    Setuptools packs everything in its build directory, including files that the bundle no longer has.
    """
    config = into / "setuptools.cfg"
    config.write_text(f"[build]\nbuild_base = {into / 'build'}\n")
    return config


def _parse_report(output: str) -> dict[str, Any]:
    """Return the report of build_backend, the last line of its output; an empty report if the last line is none."""
    last_line = output.strip().rpartition("\n")[2]
    report: dict[str, Any] = {"name": "", "read": [], "external_link": ""}
    if last_line.startswith('{"name": '):
        report = json.loads(last_line)
    return report


def _sources(wheel: Path, read: list[str]) -> tuple[str, ...]:
    """Return the files of the bundle that a wheel may contain. `read` has the paths that the backend read.

    Return the source of each packed file, and each file that was read if no packed file has its name: the backend may
    have packed this file under another name. A generated file has no source, so its path in the wheel is returned.
    """
    packed = [path for path, _ in _files(wheel) if not packing.is_hidden(path)]
    names = {Path(path).name for path in packed}
    maybe_renamed = (path for path in read if Path(path).name not in names)
    return tuple(sorted({*(_source(path, read) for path in packed), *maybe_renamed}))


def _source(packed: str, read: list[str]) -> str:
    """Return the path that a packed file was read from, or the packed path itself if no file of its name was read.

    Several files of this name may have been read; for example, setuptools also reads its own copies. Return the path
    that has the most directories at its end in common with the packed path; among equals, the shortest path.
    """

    def similarity(path: str) -> tuple[int, int]:
        """Return how many parts at the end of both paths are equal, and a number that is greater for shorter paths."""
        pairs = zip(reversed(Path(path).parts), reversed(Path(packed).parts), strict=False)
        return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs))), -len(path)

    candidates = (path for path in read if Path(path).name == Path(packed).name)
    return max(candidates, key=similarity, default=packed)


def _files(wheel: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the content of each file in the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        for path in archive.namelist():
            if not path.endswith("/"):
                yield path, archive.read(path)


def _record(files: Mapping[str, bytes], record_path: str) -> bytes:
    """Return the content of RECORD. It lists all files with their hashes and sizes, but RECORD itself without them."""
    rows = []
    for path, content in sorted(files.items()):
        digest = urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{path},," if path == record_path else f"{path},sha256={digest},{len(content)}")
    return "".join(f"{row}\n" for row in rows).encode()


def _write(wheel: Path, files: Mapping[str, bytes]) -> None:
    # The files are not compressed, because different versions of zlib compress the same content to different bytes.
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as archive:
        for path, content in sorted(files.items()):
            entry = zipfile.ZipInfo(path)  # its time stamp is always 1980-01-01
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
