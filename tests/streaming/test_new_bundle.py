"""A new bundle works without changes: its scripts create its virtual environment, run it and test it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from headrace.spark import jars

EXCLUDED = ("COV", "DATABRICKS", "HEADRACE", "PYSPARK", "PYTEST", "PYTHON", "SPARK", "VIRTUAL_ENV")
Call = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def empty() -> Iterator[Path]:
    """An empty directory, deleted when the test ends: Spark and its dependencies take a gigabyte."""
    with tempfile.TemporaryDirectory(prefix="headrace-") as directory:
        (Path(directory) / "empty").mkdir()
        yield Path(directory) / "empty"


@pytest.fixture
def call(empty: Path) -> Call:
    """Run commands in an environment without this checkout, except for its downloaded jars."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(EXCLUDED)}
    directories = environment["PATH"].split(os.pathsep)
    path = [directory for directory in directories if not directory.startswith(sys.prefix)]
    environment["PATH"] = os.pathsep.join([f"{sys.base_prefix}/bin", *path])
    environment["HEADRACE_CACHE"] = str(empty.parent / "cache")
    (empty.parent / "cache").mkdir()
    (empty.parent / "cache" / "jars").symlink_to(jars.spark_jars(version("pyspark"))[0].parent)

    def run(*command: str | Path, cwd: Path) -> CompletedProcess[str]:
        return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)

    return run


def output_of(result: CompletedProcess[str]) -> str:
    """Return the output of a command that must have succeeded."""
    assert result.returncode == 0, f"{result.args}\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.mark.full
def test_new_bundle_runs_and_passes_its_tests(empty: Path, call: Call) -> None:
    subprocess.run([sys.executable, "-m", "headrace", "init", "weather"], cwd=empty, check=True, capture_output=True)
    root = empty / "weather"

    output = output_of(call("scripts/run", cwd=root))
    assert "gold_climate: 27 rows" in output
    assert "kitchen" in output

    output = output_of(call("scripts/test", cwd=root))
    assert output.startswith("ok: 1 pipeline, 4 steps, 4 environments\n")
    assert "4 passed" in output

    venv = root / ".venv" / "bin"
    locations = output_of(call(venv / "python", "-c", "import headrace, weather; print(headrace, weather)", cwd=root))
    assert f"{root}/.venv/" in locations and f"{root}/src/weather/" in locations

    facts = json.loads(output_of(call(venv / "headrace", "build", "-o", "json", cwd=root)))
    (vendored,) = (root / "vendor").iterdir()
    assert f"wheels/{vendored.name}" in facts["files"]

    # The Headrace that is installed in the bundle can create bundles too, with the same wheel.
    output_of(call(venv / "headrace", "init", "climate", cwd=empty))
    assert (empty / "climate" / "vendor" / vendored.name).read_bytes() == vendored.read_bytes()

    with vendored.open("r+b") as wheel:
        wheel.seek(100)
        wheel.write(b"other bytes")
    lock = (root / "requirements.lock").read_text()
    (root / "headrace.lock").write_text(lock[: lock.index("annotated-types==")])
    install = ("-m", "pip", "install", "--no-index", "--find-links", "vendor", "--no-deps", "--force-reinstall")
    result = call(venv / "python", *install, "-r", "headrace.lock", cwd=root)
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in result.stderr
