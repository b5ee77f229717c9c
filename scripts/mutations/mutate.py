"""Apply each mutation of breaks.toml to a copy of the repository, run its tests, and report the first that fails."""

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
COPIED = (  # what the tests need
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
TIMEOUT_S = 600  # for each mutation


@dataclass(frozen=True)
class Mutation:
    """A change of one line of a module that must make a test fail."""

    module: str  # path below src/headrace without its suffix, or below src for other packages
    old: str
    new: str
    tests: tuple[str, ...]


def main(names: list[str]) -> int:
    """Apply the mutations of modules whose names contain one of `names`, by default all, and return the exit code.

    The exit code is 1 if the tests do not detect a mutation, or if a module has none.
    """
    mutations = load_mutations()
    missing = modules() - {mutation.module for mutation in mutations}
    for module in sorted(missing):
        print(f"{module}: NO MUTATION")
    selected = [mutation for mutation in mutations if not names or any(name in mutation.module for name in names)]
    if failure := run_original(sorted({test for mutation in selected for test in mutation.tests})):
        print(f"{failure} fails without a mutation")
        return 1
    survivors = []
    for number, mutation in enumerate(selected, 1):
        failure = apply(mutation)
        line = f"{mutation.module}: {mutation.old.strip()[:60]!r}: {failure or 'NOT DETECTED'}"
        print(f"[{number}/{len(selected)}] {line}", flush=True)
        if not failure:
            survivors.append(mutation)
    print(f"{len(selected)} mutations, {len(survivors)} not detected, {len(missing)} modules without a mutation")
    return 1 if survivors or missing else 0


def load_mutations() -> list[Mutation]:
    """Return the mutations of breaks.toml, whose keys are module names."""
    entries = tomllib.loads((Path(__file__).parent / "breaks.toml").read_text())
    return [
        Mutation(module, entry["old"], entry["new"], tuple(entry["tests"]))
        for module, module_entries in entries.items()
        for entry in module_entries
    ]


def modules() -> set[str]:
    """Return the names of all modules that define a function or class, as Mutation.module has them."""
    source = ROOT / "src"
    return {
        str(file.relative_to(source).with_suffix("")).removeprefix("headrace/")
        for file in source.rglob("*.py")
        if "templates" not in file.parts and re.search(r"^(?:def|class) ", file.read_text(), re.MULTILINE)
    }


def run_original(tests: list[str]) -> str:
    """Return the name of the first test that fails without a mutation; empty if all pass."""
    with copy_repository() as repository:
        return first_failure(repository, tests, timeout=len(tests) * TIMEOUT_S)


@contextmanager
def copy_repository() -> Iterator[Path]:
    """Yield a temporary copy of everything that the tests need."""
    with tempfile.TemporaryDirectory(prefix="headrace-mutate-") as directory:
        for name in COPIED:
            original = ROOT / name
            copy = shutil.copytree if original.is_dir() else shutil.copy
            copy(original, Path(directory) / name)
        yield Path(directory)


def apply(mutation: Mutation) -> str:
    """Return the name of the first test that fails with the mutation; empty if all pass."""
    with copy_repository() as repository:
        package = "" if mutation.module.startswith("headrace_") else "headrace"
        name = mutation.module if mutation.module.endswith(".java") else f"{mutation.module}.py"
        file = repository / "src" / package / name
        text = file.read_text()
        if (count := text.count(mutation.old)) != 1:
            raise SystemExit(
                f"Error: {mutation.old!r} occurs {count} times in {mutation.module}\n"
                "  fix: correct `old` in breaks.toml; it must occur exactly once"
            )
        file.write_text(text.replace(mutation.old, mutation.new))
        return first_failure(repository, mutation.tests)


def first_failure(repository: Path, tests: Sequence[str], *, timeout: float = TIMEOUT_S) -> str:
    """Run the tests and return the name of the first test that fails; empty if all pass."""
    environment = {**os.environ, "PYTHONPATH": str(repository / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", *tests]
    try:
        result = subprocess.run(
            command, cwd=repository, env=environment, capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{tests[0]} timed out"
    if result.returncode not in (0, 1, 2):  # not passed, failed or interrupted, but an error in the command line
        output = f"{result.stdout[-2000:]}{result.stderr[-2000:]}"
        raise SystemExit(f"Error: pytest could not run {' '.join(tests)}\n  fix: correct the test names\n{output}")
    failures = re.findall(r"^(?:FAILED|ERROR) (\S+)", result.stdout, re.MULTILINE)
    return failures[0] if failures else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
