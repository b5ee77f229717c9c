"""Applies each break of breaks.toml to a copy of the tree, runs the tests named for it, and tells which one noticed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPIED = (
    "src",
    "tests",
    "conf",
    "resources",
    "scripts",
    "databricks.yml",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "runtime.lock",
)
SECONDS = 600


@dataclass(frozen=True)
class Break:
    """One line of one module, changed so that a test must notice."""

    module: str
    old: str
    new: str
    tests: tuple[str, ...]


def main(wanted: list[str]) -> int:
    breaks = read_breaks()
    missing = modules() - {one.module for one in breaks}
    for module in sorted(missing):
        print(f"{module}: NO BREAK")
    chosen = [one for one in breaks if not wanted or any(name in one.module for name in wanted)]
    if red := without_a_break(sorted({test for one in chosen for test in one.tests})):
        print(f"{red} fails without a break: it would notice anything")
        return 1
    unnoticed = []
    for number, one in enumerate(chosen, 1):
        noticed = try_break(one)
        print(
            f"[{number}/{len(chosen)}] {one.module}: {one.old.strip()[:60]!r}: {noticed or 'NOT NOTICED'}", flush=True
        )
        unnoticed += [] if noticed else [one]
    print(f"{len(chosen)} breaks, {len(unnoticed)} not noticed, {len(missing)} modules without a break")
    return 1 if unnoticed or missing else 0


def read_breaks() -> list[Break]:
    listed = tomllib.loads((Path(__file__).parent / "breaks.toml").read_text())
    return [
        Break(module, one["old"], one["new"], tuple(one["tests"])) for module, ones in listed.items() for one in ones
    ]


def modules() -> set[str]:
    """All modules that hold code: those of the tool by their name in it, others with their package's."""
    source = ROOT / "src"
    return {
        str(file.relative_to(source).with_suffix("")).removeprefix("headrace/")
        for file in source.rglob("*.py")
        if "templates" not in file.parts and re.search(r"^(?:def|class) ", file.read_text(), re.MULTILINE)
    }


def without_a_break(tests: list[str]) -> str:
    """The name of the first test that fails in the copy as it is; empty when none does."""
    with copied() as tree:
        return first_failure(tree, tests, within=len(tests) * SECONDS)


@contextmanager
def copied() -> Iterator[Path]:
    """A copy of the tree, of all that the tests need."""
    with tempfile.TemporaryDirectory(prefix="headrace-mutate-") as place:
        for name in COPIED:
            origin = ROOT / name
            (shutil.copytree if origin.is_dir() else shutil.copy)(origin, Path(place) / name)
        yield Path(place)


def try_break(one: Break) -> str:
    """The name of the first test that failed; empty when none did."""
    with copied() as tree:
        package = "" if one.module.startswith("headrace_") else "headrace"
        file = tree / "src" / package / (one.module if one.module.endswith(".java") else f"{one.module}.py")
        text = file.read_text()
        if text.count(one.old) != 1:
            raise SystemExit(f"Error: {one.module} holds {one.old!r} {text.count(one.old)} times\n  fix: breaks.toml")
        file.write_text(text.replace(one.old, one.new))
        return first_failure(tree, one.tests)


def first_failure(tree: Path, tests: Sequence[str], *, within: float = SECONDS) -> str:
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", *tests]
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=within, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{tests[0]} did not end"
    if done.returncode not in (0, 1, 2):
        raise SystemExit(f"Error: pytest could not run {' '.join(tests)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return failed[0] if failed else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
