"""Create a bundle from templates, with Headrace's own wheel in vendor/ and the hash of the wheel in the lock file.

templates/ contains the files of a bundle, with `.template` added to their names. Placeholders in names and contents:
    @NAME@       the name of the bundle, of its package, of its pipeline and of its job
    @VERSION@    the version of Headrace's wheel
    @SHA256@     the hash of Headrace's wheel
    @DOT@        a dot, because a wheel contains no hidden files
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


def create_bundle(name: str, directory: Path) -> None:
    """Create a bundle in a directory that does not exist or contains at most .git.

    Raise ConfigurationError for an invalid name or a directory with other files, SetupError if the bundle cannot be
    written. Errors leave no incomplete bundle behind.
    """
    require_valid_name(name)
    try:
        _require_empty(directory)
        _create(name, directory)
    except OSError as error:
        raise SetupError(
            f"the bundle cannot be written: {error.strerror or error}",
            where=str(directory),
            fix="choose a writable directory: --into DIR",
        ) from error


def require_valid_name(name: str) -> None:
    """Raise ConfigurationError if the name is already used or is not valid.

    A valid name can be the name of a package, of a pipeline and of a schema of a catalog.
    """
    if not NAME.fullmatch(name):
        message = f"{name!r} is not a valid bundle name: use lower-case letters, digits and single underscores"
    elif owner := _owner(name):
        message = f"the name {name!r} belongs to {owner}"
    else:
        return
    raise ConfigurationError(message, fix=f"headrace init {_corrected(name)}")


def _corrected(name: str) -> str:
    """Return a valid name that is similar to an invalid or used one."""
    snake_case = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    parts = re.findall(r"[a-z0-9]+", snake_case)
    similar = "_".join(parts).removeprefix("headrace").lstrip("0123456789_")
    if not similar:
        return "my_jobs"
    return f"{similar}_jobs" if _owner(similar) else similar


def _owner(name: str) -> str:
    """Return what already uses the name, such as "Python", or an empty string if the name is free."""
    if name in sys.stdlib_module_names or keyword.iskeyword(name):
        return "Python"
    if not isinstance(yaml.safe_load(name), str):  # `on`, `yes` and `null` have other types
        return "YAML"
    if name == "tests":
        return "the bundle's tests"
    if name.startswith("headrace"):
        return "Headrace"
    lock = (TEMPLATES / f"requirements.lock{SUFFIX}").read_text(encoding="utf-8")
    required = set(re.findall(r"^([\w.-]+)==", lock, re.MULTILINE))
    # The distributions that have this name or contain a package of this name.
    distributions = (name, *packages_distributions().get(name, ()))
    normalized = (re.sub(r"[-_.]+", "-", each).lower() for each in distributions)
    return next((f"{owner}, which the bundle needs" for owner in normalized if owner in required), "")


def _require_empty(directory: Path) -> None:
    """Accept an empty directory, one that contains only .git, or a missing one whose parent exists.

    Raise ConfigurationError for any other path.
    """
    if not directory.parent.is_dir():
        raise ConfigurationError(
            "the parent directory does not exist",
            where=str(directory),
            fix=f"mkdir -p {shlex.quote(str(directory.parent))}",
        )
    is_file = directory.exists() and not directory.is_dir()
    names = {path.name for path in directory.iterdir()} if directory.is_dir() else set()
    if is_file or names - {".git"}:
        raise ConfigurationError(
            "the directory is not empty, or is a file",
            where=str(directory),
            fix="choose another directory: --into DIR",
        )


def _create(name: str, directory: Path) -> None:
    """Create the bundle in a temporary directory on the same file system, then move it."""
    exists = directory.exists()
    with tempfile.TemporaryDirectory(prefix=".creating-", dir=directory if exists else directory.parent) as temporary:
        bundle = Path(temporary) / name
        (bundle / "vendor").mkdir(parents=True)
        wheel = _own_wheel(bundle / "vendor")
        _write(bundle, name, wheel)
        if not exists:
            bundle.rename(directory)
            return
        # The files are moved one by one. Replacing the directory would break a shell whose working directory it is.
        for path in sorted(bundle.iterdir()):
            path.rename(directory / path.name)


def _own_wheel(into: Path) -> Path:
    """Create Headrace's own wheel in the directory `into`, and return its path.

    Build the wheel if Headrace is imported from a checkout; otherwise pack its installed files.
    """
    checkout = Path(__file__).resolve().parents[3]
    if not (checkout / "pyproject.toml").is_file():
        return wheels.pack_installed(distribution("headrace"), into)
    with tempfile.TemporaryDirectory() as temporary:
        return wheels.copy_with_content_hash(wheels.build_wheel(checkout, Path(temporary)).file, into)


def _write(bundle: Path, name: str, wheel: Path) -> None:
    """Write the files of the bundle from the templates. `wheel` is Headrace's wheel in vendor/."""
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    values = {"@NAME@": name, "@VERSION@": wheel.name.split("-")[1], "@SHA256@": digest, "@DOT@": "."}

    def fill_in(text: str) -> str:
        """Replace the placeholders."""
        return re.sub("|".join(values), lambda match: values[match[0]], text)

    for template in sorted(TEMPLATES.rglob(f"*{SUFFIX}")):
        file = bundle / fill_in(str(template.relative_to(TEMPLATES)).removesuffix(SUFFIX))
        file.parent.mkdir(parents=True, exist_ok=True)
        text = fill_in(template.read_text(encoding="utf-8"))
        file.write_text(text, encoding="utf-8")
        if text.startswith("#!"):
            mode = file.stat().st_mode
            file.chmod(mode | (mode & 0o444) >> 2)  # all who may read the script may execute it
