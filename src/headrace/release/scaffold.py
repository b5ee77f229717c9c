"""A new bundle: the templates' files, and Headrace's own wheel with its hash in the lock. All of it, or nothing.

templates/ holds each file under the name that it will have, followed by `.template`. In names and in texts
    @NAME@       is the bundle's name, and so its package's, its pipeline's and its job's
    @VERSION@    the version of the wheel in vendor/
    @SHA256@     the hash of that wheel
    @DOT@        a dot: a wheel holds no hidden files
"""

from __future__ import annotations

import hashlib
import keyword
import re
import shlex
import sys
import tempfile
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import yaml

from headrace.errors import ConfigurationError, SetupError
from headrace.release import wheels

TEMPLATES = Path(__file__).with_name("templates")
SUFFIX = ".template"
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


def make(name: str, directory: Path) -> None:
    """Makes a bundle of that name in a directory that is not there, or holds nothing but .git."""
    require_name(name)
    try:
        _require_room(directory)
        _make(name, directory)
    except OSError as error:
        raise SetupError(
            f"the bundle cannot be written: {error.strerror or error}",
            where=str(directory),
            fix="choose a directory that you may write to: --into DIR",
        ) from error


def require_name(name: str) -> None:
    """Raises unless a package, a pipeline and a schema can be called so, and nothing else is."""
    if not NAME.fullmatch(name):
        wrong = f"{name!r} is no name for a Python package: small letters, digits and single '_'"
    elif owner := _owner(name):
        wrong = f"the name {name!r} belongs to {owner}"
    else:
        return
    raise ConfigurationError(wrong, fix=f"headrace init {_corrected(name)}")


def _corrected(name: str) -> str:
    """The nearest name that is free."""
    words = re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())
    near = "_".join(words).removeprefix("headrace").lstrip("0123456789_")
    return f"{near or 'my'}_jobs" if not near or _owner(near) else near


def _owner(name: str) -> str:
    """Whose name it is already; empty when it is free."""
    if name in sys.stdlib_module_names or keyword.iskeyword(name):
        return "Python"
    if not isinstance(yaml.safe_load(name), str):  # on, yes, null
        return "YAML"
    if name == "tests":
        return "the bundle's tests"
    if name.startswith("headrace"):
        return "Headrace"
    lock = (TEMPLATES / f"requirements.lock{SUFFIX}").read_text(encoding="utf-8")
    needed = set(re.findall(r"^([\w.-]+)==", lock, re.MULTILINE))
    owners = (re.sub(r"[-_.]+", "-", owner).lower() for owner in (name, *packages_distributions().get(name, ())))
    return next((f"{owner}, which the bundle needs" for owner in owners if owner in needed), "")


def _require_room(directory: Path) -> None:
    if not directory.parent.is_dir():
        raise ConfigurationError(
            "the directory above is not there",
            where=str(directory),
            fix=f"mkdir -p {shlex.quote(str(directory.parent))}",
        )
    if directory.exists() and (not directory.is_dir() or {part.name for part in directory.iterdir()} - {".git"}):
        raise ConfigurationError(
            "there is something already", where=str(directory), fix="choose another directory: --into DIR"
        )


def _make(name: str, directory: Path) -> None:
    is_there = directory.exists()
    with tempfile.TemporaryDirectory(prefix=".making-", dir=directory if is_there else directory.parent) as place:
        bundle = Path(place) / name
        (bundle / "vendor").mkdir(parents=True)
        wheel = _own_wheel(bundle / "vendor")
        _write(bundle, name, wheel)
        if not is_there:
            bundle.rename(directory)
            return
        for part in sorted(bundle.iterdir()):  # somebody may stand in that directory: it stays the same one
            part.rename(directory / part.name)


def _own_wheel(into: Path) -> Path:
    """Headrace's own wheel: built of the checkout that this is, else packed again from what is installed."""
    checkout = Path(__file__).resolve().parents[3]
    if not (checkout / "pyproject.toml").is_file():
        return wheels.pack_installed(distribution("headrace"), into)
    with tempfile.TemporaryDirectory() as place:
        return wheels.name_after_content(wheels.build_wheel(checkout, Path(place)).file, into)


def _write(bundle: Path, name: str, wheel: Path) -> None:
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    meant = {"@NAME@": name, "@VERSION@": wheel.name.split("-")[1], "@SHA256@": digest, "@DOT@": "."}

    def put_in(text: str) -> str:
        return re.sub("|".join(meant), lambda found: meant[found[0]], text)

    for template in sorted(TEMPLATES.rglob(f"*{SUFFIX}")):
        file = bundle / put_in(str(template.relative_to(TEMPLATES)).removesuffix(SUFFIX))
        file.parent.mkdir(parents=True, exist_ok=True)
        text = put_in(template.read_text(encoding="utf-8"))
        file.write_text(text, encoding="utf-8")
        if text.startswith("#!"):
            mode = file.stat().st_mode
            file.chmod(mode | (mode & 0o444) >> 2)  # who may read it may run it
