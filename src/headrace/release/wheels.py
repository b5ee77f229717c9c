"""Wheels: built, and named after their content: the same bytes from the same tree, anywhere, any day."""

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

OF_INSTALLERS = ("INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_cache.json")


@dataclass(frozen=True)
class Built:
    """A wheel, and the files of the bundle that it was built from."""

    file: Path
    sources: tuple[str, ...]


def build_wheel(root: Path, into: Path) -> Built:
    """Build the wheel of the bundle's pyproject.toml with the build backend that it names."""
    project = root / "pyproject.toml"
    if not project.is_file():
        raise ConfigurationError(
            "the bundle has no pyproject.toml", where=str(root), fix="write one: a release carries a wheel"
        )
    told = tomllib.loads(project.read_text())
    backend = told.get("build-system", {}).get("build-backend", "setuptools.build_meta")
    done = subprocess.run(
        [sys.executable, "-m", "headrace.release.build_backend", backend, str(into)],
        cwd=root,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1580601600", "DIST_EXTRA_CONFIG": str(_setuptools_config(into))},
        capture_output=True,
        text=True,
        check=False,
    )
    report = _report(done.stdout)
    packing.list_files(root, filter(None, [report["refused"]]))
    if done.returncode:
        module = backend.partition(".")[0]
        missing = f"No module named '{module}'" in done.stderr
        last = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "it said nothing"
        raise SetupError(
            f"{backend} is not installed" if missing else f"the wheel cannot be built: {last}",
            where=str(project),
            fix=f"pip install {module}" if missing else "correct pyproject.toml or what it names",
        )
    return Built(into / report["name"], _sources(into / report["name"], report["read"]))


def name_after_content(wheel: Path, into: Path) -> Path:
    """Copy the wheel without hidden files; its version gets the hash of its content: 1.2.0 becomes 1.2.0+g1a2b3c4d."""
    name, version, *tags = wheel.stem.split("-")
    if "+" in version:
        raise ConfigurationError(
            f"the version {version} has a local part already",
            where="pyproject.toml",
            fix="leave it to the release, which puts the content's hash there",
        )
    files = {path: content for path, content in _files(wheel) if not packing.is_hidden(path)}
    digest = hashlib.sha256()
    for path, content in sorted(files.items()):
        if not path.endswith(".dist-info/RECORD"):
            digest.update(f"{path}\0{len(content)}\0".encode() + content)
    stamped = f"{version}+g{digest.hexdigest()[:8]}"
    before, after = f"{name}-{version}.dist-info/", f"{name}-{stamped}.dist-info/"
    renamed = {path.replace(before, after, 1): content for path, content in files.items()}
    told = renamed[f"{after}METADATA"].decode()
    renamed[f"{after}METADATA"] = re.sub(r"^Version: .*$", f"Version: {stamped}", told, count=1, flags=re.M).encode()
    renamed[f"{after}RECORD"] = _record(renamed, f"{after}RECORD")
    named = into / "-".join([name, stamped, *tags])
    named = named.with_name(f"{named.name}.whl")
    _write(named, renamed)
    return named


def pack_installed(distribution: Distribution, into: Path) -> Path:
    """The wheel that a distribution was installed from, packed again from its files."""
    paths = [path for path in distribution.files or () if not {"..", "__pycache__"} & set(path.parts)]
    files = {path.as_posix(): path.read_binary() for path in paths if path.name not in OF_INSTALLERS}
    about = next((path.removesuffix("/WHEEL") for path in files if path.endswith(".dist-info/WHEEL")), None)
    if about is None:
        raise SetupError(
            f"{distribution.metadata['Name']} was installed without a list of its files",
            fix="install it from a wheel, with pip, in a virtual environment",
        )
    tags = [tag.split("-") for tag in re.findall(r"^Tag: (\S+)$", files[f"{about}/WHEEL"].decode(), re.MULTILINE)]
    tag = "-".join(".".join(dict.fromkeys(part)) for part in zip(*tags, strict=True))  # py2.py3-none-any
    record = f"{about}/RECORD"
    files[record] = _record({**files, record: b""}, record)
    packed = into / f"{about.removesuffix('.dist-info')}-{tag}.whl"
    _write(packed, files)
    return packed


def _setuptools_config(into: Path) -> Path:
    """Write a file that keeps the working copy of setuptools out of the bundle: deleted files stay in it."""
    config = into / "setuptools.cfg"
    config.write_text(f"[build]\nbuild_base = {into / 'build'}\n")
    return config


def _report(output: str) -> dict[str, Any]:
    """Return what the build process reported. The backend may have printed more before, or ended the process."""
    last = output.strip().rpartition("\n")[2]
    report: dict[str, Any] = (
        json.loads(last) if last.startswith('{"name": ') else {"name": "", "read": [], "refused": ""}
    )
    return report


def _sources(wheel: Path, read: list[str]) -> tuple[str, ...]:
    """Return the path in the bundle of each file in the wheel, and of those that were packed under another name.

    A file that the backend generated keeps its path in the wheel.
    """
    packed = [path for path, _ in _files(wheel) if not packing.is_hidden(path)]
    names = {Path(path).name for path in packed}
    others = (path for path in read if Path(path).name not in names)
    return tuple(sorted({*(_source(path, read) for path in packed), *others}))


def _source(packed: str, read: list[str]) -> str:
    """Return the file of the same name whose path ends most like the packed one's; setuptools reads its copies too."""

    def likeness(path: str) -> tuple[int, int]:
        pairs = zip(reversed(Path(path).parts), reversed(Path(packed).parts), strict=False)
        return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs))), -len(path)

    same = (path for path in read if Path(path).name == Path(packed).name)
    return max(same, key=likeness, default=packed)


def _files(wheel: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(wheel) as archive:
        for path in archive.namelist():
            if not path.endswith("/"):
                yield path, archive.read(path)


def _record(files: Mapping[str, bytes], own: str) -> bytes:
    rows = []
    for path, content in sorted(files.items()):
        digest = urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{path},," if path == own else f"{path},sha256={digest},{len(content)}")
    return "".join(f"{row}\n" for row in rows).encode()


def _write(wheel: Path, files: Mapping[str, bytes]) -> None:
    # Stored, not deflated: two versions of zlib may pack the same bytes otherwise.
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as archive:
        for path, content in sorted(files.items()):
            entry = zipfile.ZipInfo(path)  # of the year 1980, whenever it is built
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
