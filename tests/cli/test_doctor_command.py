"""Test `headrace doctor`: text, JSON and exit code."""

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
from headrace.observe.doctor import WORKSPACE_VARIABLES

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


def test_machine_with_everything_is_ok(bundle: Path) -> None:
    result = doctor(bundle)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0] == f"ok   bundle       {bundle}, environment local"
    assert f"ok   tables       {bundle}/.headrace/tables: writable" in result.output
    assert all(line.startswith("ok ") for line in lines)


def test_each_problem_is_reported_with_a_fix(
    bundle: Path, monkeypatch: pytest.MonkeyPatch, golden: Callable[[str, str], None]
) -> None:
    java = bundle / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(bundle))
    monkeypatch.setenv("HEADRACE_CACHE", str(bundle / "conf" / "local.yml"))
    monkeypatch.setattr("headrace.spark.java.memory_available", lambda: 1 << 20)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1}, raising=False)
    monkeypatch.setattr("locale.getencoding", lambda: "ANSI_X3.4-1968")
    monkeypatch.setattr("headrace.observe.doctor.MIN_PYTHON", (9, 9))
    monkeypatch.setattr("headrace.observe.doctor.version", {"pyspark": "4.2.0", "delta-spark": "4.0.0"}.__getitem__)
    monkeypatch.setattr("headrace.observe.doctor.MIN_FREE_BYTES", 1 << 60)
    original_access, cache = os.access, bundle / "conf" / "local.yml"
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != cache and original_access(path, mode))
    (bundle / ".headrace").mkdir()
    (bundle / ".headrace" / "checkpoints").write_text("a file")
    (bundle / "conf" / "local.yml").write_text(LOCAL.replace("cores: 1", "cores: 8"))
    for name in WORKSPACE_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    result = doctor(bundle)
    assert result.exit_code == 1
    text = result.output.replace(str(bundle), "BUNDLE").replace(platform.python_version(), "PYTHON")
    golden("doctor/problems", re.sub(r"has \d+ MB free", "has N MB free", text))


def test_json_output(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    healthy = doctor(bundle, "-o", "json")
    assert healthy.exit_code == 0
    assert json.loads(healthy.output)["ok"] is True
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    result = doctor(bundle, "-o", "json")
    assert result.exit_code == 1
    facts = json.loads(result.output)
    assert facts["ok"] is False
    assert {
        "name": "java",
        "ok": False,
        "finding": "JAVA_HOME is /nowhere, which has no bin/java",
        "fix": "install Java 17 or 21 and put it on PATH, or set JAVA_HOME to its directory",
    } in facts["findings"]


def test_machine_is_checked_outside_of_a_bundle(tmp_path: Path) -> None:
    result = doctor(tmp_path)
    assert (
        "ok   bundle       no bundle in this directory: checking the needs of a local run with default settings"
        in result.output
    )
    assert "  java  " in result.output


def test_error_in_the_bundle_is_one_finding(bundle: Path) -> None:
    (bundle / "conf" / "local.yml").write_text(LOCAL.replace("cores", "coers").replace("root", "rot"))
    result = doctor(bundle)
    assert result.exit_code == 1
    assert "BAD  bundle       conf/local.yml:1: " in result.output
    assert "(`headrace check` lists 1 more)" in result.output
    assert "fix: did you mean 'cores'?" in result.output
    assert "  java  " in result.output


def test_required_values_are_optional(bundle: Path) -> None:
    local = LOCAL.replace(".headrace/tables", "'${user}/tables'") + "values: {user: {required: true}}\n"
    (bundle / "conf" / "local.yml").write_text(local)
    assert doctor(bundle).exit_code == 0
    assert f"{bundle}/ada/tables: writable" in doctor(bundle, "--value", "user=ada").output


def test_unknown_environment_is_a_finding(bundle: Path) -> None:
    result = doctor(bundle, "--env", "prod")
    assert result.exit_code == 1
    assert "BAD  bundle" in result.output
    assert "prod" in result.output


def test_doctor_does_not_import_spark(bundle: Path) -> None:
    code = (
        "import sys; from headrace.cli import main; main(['doctor'], standalone_mode=False); "
        "sys.exit('pyspark' in sys.modules)"
    )
    process = subprocess.run([sys.executable, "-c", code], cwd=bundle, capture_output=True, env=os.environ)
    assert process.returncode == 0, process.stderr
