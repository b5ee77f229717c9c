"""`headrace doctor`: lines for people, JSON for programs, an exit code for scripts."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.cli import main
from headrace.observe.doctor import WORKSPACE

LOCAL = """\
engine: {kind: local, cores: 1, memory: 512m}
tables: {root: .headrace/tables}
checkpoints: .headrace/checkpoints
sources: {numbers: {kind: rate}}
"""
PIPELINE = """\
steps:
  numbers: {layer: bronze, reads: {numbers: {source: numbers}}, writes: {table: numbers}}
"""


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    (tmp_path / "conf" / "pipelines").mkdir(parents=True)
    (tmp_path / "conf" / "local.yml").write_text(LOCAL)
    (tmp_path / "conf" / "pipelines" / "numbers.yml").write_text(PIPELINE)
    return tmp_path


def doctor(directory: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["doctor", "-C", str(directory), *options])


def test_a_healthy_machine(bundle: Path) -> None:
    result = doctor(bundle)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0] == f"ok   bundle       {bundle}, environment local"
    assert f"ok   tables       {bundle}/.headrace/tables: writable" in result.output
    assert all(line.startswith("ok ") for line in lines)


def test_a_sick_machine(bundle: Path, monkeypatch: pytest.MonkeyPatch, golden: Callable[[str, str], None]) -> None:
    java = bundle / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(bundle))
    monkeypatch.setenv("HEADRACE_CACHE", str(bundle / "conf" / "local.yml"))
    monkeypatch.setattr("headrace.spark.java.memory_available", lambda: 1 << 20)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1}, raising=False)
    monkeypatch.setattr("locale.getencoding", lambda: "ANSI_X3.4-1968")
    monkeypatch.setattr("headrace.observe.doctor.PYTHON", (9, 9))
    monkeypatch.setattr("headrace.observe.doctor.version", {"pyspark": "4.2.0", "delta-spark": "4.0.0"}.__getitem__)
    monkeypatch.setattr("headrace.observe.doctor.ROOM", 1 << 60)
    real, cache = os.access, bundle / "conf" / "local.yml"
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != cache and real(path, mode))
    (bundle / ".headrace").mkdir()
    (bundle / ".headrace" / "checkpoints").write_text("in the way")
    (bundle / "conf" / "local.yml").write_text(LOCAL.replace("cores: 1", "cores: 8"))
    for name in WORKSPACE:
        monkeypatch.delenv(name, raising=False)
    result = doctor(bundle)
    assert result.exit_code == 1
    said = result.output.replace(str(bundle), "BUNDLE").replace(platform.python_version(), "PYTHON")
    golden("doctor/sick", re.sub(r"has \d+ MB of free", "has N MB of free", said))


def test_json(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    healthy = doctor(bundle, "-o", "json")
    assert healthy.exit_code == 0
    assert json.loads(healthy.output)["ok"] is True
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    result = doctor(bundle, "-o", "json")
    assert result.exit_code == 1
    told = json.loads(result.output)
    assert told["ok"] is False
    assert {
        "name": "java",
        "ok": False,
        "finding": "JAVA_HOME is /nowhere, and there is no bin/java in it",
        "fix": "install Java 17 or 21 and put it on PATH, or set JAVA_HOME to its directory",
    } in told["findings"]


def test_outside_of_a_bundle_the_machine_is_looked_at_all_the_same(tmp_path: Path) -> None:
    result = doctor(tmp_path)
    assert "ok   bundle       none here: a local run with default settings is looked at" in result.output
    assert "  java  " in result.output


def test_a_broken_bundle_is_one_line_of_many(bundle: Path) -> None:
    (bundle / "conf" / "local.yml").write_text(LOCAL.replace("cores", "coers").replace("root", "rot"))
    result = doctor(bundle)
    assert result.exit_code == 1
    assert "BAD  bundle       conf/local.yml:1: " in result.output
    assert "(headrace check names 1 more)" in result.output
    assert "fix: did you mean 'cores'?" in result.output
    assert "  java  " in result.output


def test_values_that_a_run_needs_may_be_given_or_not(bundle: Path) -> None:
    asking = LOCAL.replace(".headrace/tables", "'${user}/tables'") + "values: {user: {required: true}}\n"
    (bundle / "conf" / "local.yml").write_text(asking)
    assert doctor(bundle).exit_code == 0
    assert f"{bundle}/ada/tables: writable" in doctor(bundle, "--value", "user=ada").output


def test_an_unknown_environment(bundle: Path) -> None:
    result = doctor(bundle, "--env", "prod")
    assert result.exit_code == 1
    assert "BAD  bundle" in result.output
    assert "prod" in result.output


def test_it_imports_no_spark(bundle: Path) -> None:
    code = (
        "import sys; from headrace.cli import main; main(['doctor'], standalone_mode=False); "
        "sys.exit('pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=bundle, capture_output=True, env=os.environ)
    assert done.returncode == 0, done.stderr
