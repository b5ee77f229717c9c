"""A bundle made in an empty directory works as it is: in an environment of its own, by its own scripts."""

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

OURS = ("COV", "DATABRICKS", "HEADRACE", "PYSPARK", "PYTEST", "PYTHON", "SPARK", "VIRTUAL_ENV")
Call = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def empty() -> Iterator[Path]:
    """An empty directory that goes when the test ends: Spark and its kin are a gigabyte."""
    with tempfile.TemporaryDirectory(prefix="headrace-") as place:
        (Path(place) / "empty").mkdir()
        yield Path(place) / "empty"


@pytest.fixture
def call(empty: Path) -> Call:
    """Calls a command as somebody does who has nothing of this checkout but the jars that were fetched."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    path = [place for place in kept["PATH"].split(os.pathsep) if not place.startswith(sys.prefix)]
    kept["PATH"] = os.pathsep.join([f"{sys.base_prefix}/bin", *path])
    kept["HEADRACE_CACHE"] = str(empty.parent / "cache")
    (empty.parent / "cache").mkdir()
    (empty.parent / "cache" / "jars").symlink_to(jars.spark_jars(version("pyspark"))[0].parent)

    def run(*command: str | Path, cwd: Path) -> CompletedProcess[str]:
        return subprocess.run(command, cwd=cwd, env=kept, capture_output=True, text=True, check=False)

    return run


def said(done: CompletedProcess[str]) -> str:
    """What a command printed that went well."""
    assert done.returncode == 0, f"{done.args}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_new_bundle_runs_and_passes_its_tests(empty: Path, call: Call) -> None:
    subprocess.run([sys.executable, "-m", "headrace", "init", "weather"], cwd=empty, check=True, capture_output=True)
    root = empty / "weather"

    told = said(call("scripts/run", cwd=root))
    assert "gold_climate: 27 rows" in told
    assert "kitchen" in told

    told = said(call("scripts/test", cwd=root))
    assert told.startswith("ok: 1 pipeline, 4 steps, 4 environments\n")
    assert "4 passed" in told

    own = root / ".venv" / "bin"
    places = said(call(own / "python", "-c", "import headrace, weather; print(headrace, weather)", cwd=root))
    assert f"{root}/.venv/" in places and f"{root}/src/weather/" in places

    facts = json.loads(said(call(own / "headrace", "build", "-o", "json", cwd=root)))
    (vendored,) = (root / "vendor").iterdir()
    assert f"wheels/{vendored.name}" in facts["files"]

    # What is installed there makes bundles too, with the same Headrace in them.
    said(call(own / "headrace", "init", "climate", cwd=empty))
    assert (empty / "climate" / "vendor" / vendored.name).read_bytes() == vendored.read_bytes()

    with vendored.open("r+b") as wheel:
        wheel.seek(100)
        wheel.write(b"other bytes")
    lock = (root / "requirements.lock").read_text()
    (root / "headrace.lock").write_text(lock[: lock.index("annotated-types==")])
    install = ("-m", "pip", "install", "--no-index", "--find-links", "vendor", "--no-deps", "--force-reinstall")
    refused = call(own / "python", *install, "-r", "headrace.lock", cwd=root)
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in refused.stderr
