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

INSTALLER_FILES = ("INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_cache.json")


@dataclass(frozen=True)
class BuiltWheel:
    """A wheel, and the files of the bundle that it was built from."""

    file: Path
    sources: tuple[str, ...]


def build_wheel(root: Path, into: Path) -> BuiltWheel:
    """Build the wheel of the bundle with the build backend that its pyproject.toml names."""
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
        env={**os.environ, "SOURCE_DATE_EPOCH": "1580601600", "DIST_EXTRA_CONFIG": str(_setuptools_config(into))},
        capture_output=True,
        text=True,
        check=False,
    )
    report = _parse_report(build.stdout)
    packing.list_files(root, filter(None, [report["external_link"]]))
    if build.returncode:
        module = backend.partition(".")[0]
        missing = f"No module named '{module}'" in build.stderr
        last = build.stderr.strip().splitlines()[-1] if build.stderr.strip() else "the build printed no error"
        raise SetupError(
            f"{backend} is not installed" if missing else f"the wheel cannot be built: {last}",
            where=str(project),
            fix=f"pip install {module}" if missing else "correct pyproject.toml or the files that it names",
        )
    return BuiltWheel(into / report["name"], _sources(into / report["name"], report["read"]))


def name_after_content(wheel: Path, into: Path) -> Path:
    """Copy the wheel without hidden files, and add the hash of its content to the version: 1.2.0+g1a2b3c4d."""
    name, version, *tags = wheel.stem.split("-")
    if "+" in version:
        raise ConfigurationError(
            f"the version {version} already has a local part",
            where="pyproject.toml",
            fix="remove the part after '+': a release puts the hash of the content there",
        )
    files = {path: content for path, content in _files(wheel) if not packing.is_hidden(path)}
    digest = hashlib.sha256()
    for path, content in sorted(files.items()):
        if not path.endswith(".dist-info/RECORD"):
            digest.update(f"{path}\0{len(content)}\0".encode() + content)
    stamped = f"{version}+g{digest.hexdigest()[:8]}"
    before, after = f"{name}-{version}.dist-info/", f"{name}-{stamped}.dist-info/"
    renamed = {path.replace(before, after, 1): content for path, content in files.items()}
    metadata = renamed[f"{after}METADATA"].decode()
    metadata = re.sub(r"^Version: .*$", f"Version: {stamped}", metadata, count=1, flags=re.MULTILINE)
    renamed[f"{after}METADATA"] = metadata.encode()
    renamed[f"{after}RECORD"] = _record(renamed, f"{after}RECORD")
    stamped_wheel = into / f"{'-'.join([name, stamped, *tags])}.whl"
    _write(stamped_wheel, renamed)
    return stamped_wheel


def pack_installed(distribution: Distribution, into: Path) -> Path:
    """Pack an installed distribution again as the wheel that it was installed from."""
    paths = [path for path in distribution.files or () if not {"..", "__pycache__"} & set(path.parts)]
    files = {path.as_posix(): path.read_binary() for path in paths if path.name not in INSTALLER_FILES}
    dist_info = next((path.removesuffix("/WHEEL") for path in files if path.endswith(".dist-info/WHEEL")), None)
    if dist_info is None:
        raise SetupError(
            f"{distribution.metadata['Name']} was installed without a list of its files",
            fix="install it from a wheel, with pip, in a virtual environment",
        )
    tags = [tag.split("-") for tag in re.findall(r"^Tag: (\S+)$", files[f"{dist_info}/WHEEL"].decode(), re.MULTILINE)]
    tag = "-".join(".".join(dict.fromkeys(part)) for part in zip(*tags, strict=True))  # py2.py3-none-any
    record = f"{dist_info}/RECORD"
    files[record] = _record({**files, record: b""}, record)
    packed = into / f"{dist_info.removesuffix('.dist-info')}-{tag}.whl"
    _write(packed, files)
    return packed


def _setuptools_config(into: Path) -> Path:
    """Write a configuration that moves setuptools' build directory out of the bundle, as deleted files stay in it."""
    config = into / "setuptools.cfg"
    config.write_text(f"[build]\nbuild_base = {into / 'build'}\n")
    return config


def _parse_report(output: str) -> dict[str, Any]:
    """Return the last line of the output, the report; an empty report if the backend exited before it."""
    last = output.strip().rpartition("\n")[2]
    report: dict[str, Any] = (
        json.loads(last) if last.startswith('{"name": ') else {"name": "", "read": [], "external_link": ""}
    )
    return report


def _sources(wheel: Path, read: list[str]) -> tuple[str, ...]:
    """Return the path in the bundle of each file in the wheel, and of files packed under another name.

    A generated file is listed with its path in the wheel.
    """
    packed = [path for path, _ in _files(wheel) if not packing.is_hidden(path)]
    names = {Path(path).name for path in packed}
    others = (path for path in read if Path(path).name not in names)
    return tuple(sorted({*(_source(path, read) for path in packed), *others}))


def _source(packed: str, read: list[str]) -> str:
    """Return the read file of the same name with the longest common end of the path; setuptools also reads copies."""

    def similarity(path: str) -> tuple[int, int]:
        pairs = zip(reversed(Path(path).parts), reversed(Path(packed).parts), strict=False)
        return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs))), -len(path)

    candidates = (path for path in read if Path(path).name == Path(packed).name)
    return max(candidates, key=similarity, default=packed)


def _files(wheel: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(wheel) as archive:
        for path in archive.namelist():
            if not path.endswith("/"):
                yield path, archive.read(path)


def _record(files: Mapping[str, bytes], record_path: str) -> bytes:
    """Return the content of RECORD, which lists itself without a hash."""
    rows = []
    for path, content in sorted(files.items()):
        digest = urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{path},," if path == record_path else f"{path},sha256={digest},{len(content)}")
    return "".join(f"{row}\n" for row in rows).encode()


def _write(wheel: Path, files: Mapping[str, bytes]) -> None:
    # Stored, not deflated: different versions of zlib compress the same content to different bytes.
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as archive:
        for path, content in sorted(files.items()):
            entry = zipfile.ZipInfo(path)  # with the constant time stamp 1980-01-01
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
