"""Create a bundle from templates, with Headrace's own wheel in vendor/ and the hash of the wheel in the lock file.

The directory may hold other files, such as a README, which are left alone.

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

from headrace.config.schema_files import write_schemas
from headrace.errors import ConfigurationError, SetupError
from headrace.release import wheels

TEMPLATES = Path(__file__).with_name("templates")
SUFFIX = ".template"
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
# Files that a bundle does not need: if the directory has such a file, it is left alone, and the user should do this.
OPTIONAL_FILES = {
    "README.md": "`headrace init --help` says what the bundle contains",
    ".gitignore": "add .venv/, .headrace/, /dist/, __pycache__/, spark-warehouse/, metastore_db/ and derby.log",
    ".github/workflows/ci.yml": "let it call scripts/test",
    ".vscode/settings.json": "the first lines of the files in conf/ name their schemas",
}
# Directories whose YAML files all belong to the bundle.
OWN_DIRECTORIES = ("conf", "resources")


def create_bundle(name: str, directory: Path) -> list[str]:
    """Create a bundle in a directory. Return the optional files that existed and were left alone.

    Raise ConfigurationError for an invalid name, or if the directory has other files that the bundle needs. Raise
    SetupError if the bundle cannot be written. Errors leave no incomplete bundle behind.
    """
    require_valid_name(name)
    try:
        _require_directory(directory)
        return _create(name, directory)
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


def _require_directory(directory: Path) -> None:
    """Raise ConfigurationError if the path is a file, or if neither it nor its parent exists."""
    if not directory.parent.is_dir():
        raise ConfigurationError(
            "the parent directory does not exist",
            where=str(directory),
            fix=f"mkdir -p {shlex.quote(str(directory.parent))}",
        )
    if directory.exists() and not directory.is_dir():
        fix = "choose another directory: --into DIR"
        raise ConfigurationError("the path of the new bundle is a file", where=str(directory), fix=fix)


def _require_no_conflicts(files: list[str], directory: Path) -> None:
    """Raise ConfigurationError if the bundle would replace files, or if `conf` or `resources` has files already."""
    occupied = [f"{name}/" for name in OWN_DIRECTORIES if any((directory / name).glob("**/*"))]
    needed = [file for file in files if file not in OPTIONAL_FILES and not file.startswith(tuple(occupied))]
    occupied += [file for file in needed if (directory / file).exists()]
    parents = {str(parent) for file in files for parent in Path(file).parents}
    occupied += sorted(parent for parent in parents if (directory / parent).is_file())
    if occupied:
        more = f" and {len(occupied) - 5} more" if len(occupied) > 5 else ""
        raise ConfigurationError(
            f"the directory already has files that the bundle needs: {', '.join(occupied[:5])}{more}",
            where=str(directory),
            fix="move them, or create the bundle in another directory: --into DIR",
        )


def _create(name: str, directory: Path) -> list[str]:
    """Create the bundle in a temporary directory on the same file system, then rename it.

    If the directory exists, move the files into it instead. Return the optional files that existed and were kept.
    """
    exists = directory.exists()
    with tempfile.TemporaryDirectory(prefix=".creating-", dir=directory if exists else directory.parent) as temporary:
        bundle = Path(temporary) / name
        (bundle / "vendor").mkdir(parents=True)
        wheel = _own_wheel(bundle / "vendor")
        _write(bundle, name, wheel)
        if not exists:
            bundle.rename(directory)
            return []
        # The files are moved one by one. Replacing the directory would break a shell whose working directory it is.
        files = sorted(str(path.relative_to(bundle)) for path in bundle.rglob("*") if path.is_file())
        _require_no_conflicts(files, directory)
        existing = [file for file in files if (directory / file).exists()]
        for file in files:
            if file not in existing:
                (directory / file).parent.mkdir(parents=True, exist_ok=True)
                (bundle / file).rename(directory / file)
        return existing


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

    write_schemas(bundle)
    for template in sorted(TEMPLATES.rglob(f"*{SUFFIX}")):
        file = bundle / fill_in(str(template.relative_to(TEMPLATES)).removesuffix(SUFFIX))
        file.parent.mkdir(parents=True, exist_ok=True)
        text = fill_in(template.read_text(encoding="utf-8"))
        file.write_text(text, encoding="utf-8")
        if text.startswith("#!"):
            mode = file.stat().st_mode
            file.chmod(mode | (mode & 0o444) >> 2)  # all who may read the script may execute it
