"""The doctor: a healthy machine is all ok, and each thing that is taken away is one bad line with its fix."""

from __future__ import annotations

import importlib.metadata
import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from headrace.config.models import DatabricksEngine, Environment, LocalEngine, SparkEngine, Tables
from headrace.observe import doctor
from headrace.observe.doctor import Finding, examine
from headrace.spark import jars, java


def local(root: Path, **engine: Any) -> Environment:
    return Environment(
        name="local",
        engine=LocalEngine(kind="local", **engine),
        tables=Tables(root=str(root / "tables")),
        checkpoints=str(root / "checkpoints"),
    )


def line(name: str, environment: Environment | None = None) -> Finding:
    return next(finding for finding in examine(environment) if finding.name == name)


def bad(environment: Environment) -> list[str]:
    return [finding.name for finding in examine(environment) if not finding.ok]


def test_this_machine_is_healthy(tmp_path: Path) -> None:
    findings = examine(local(tmp_path, memory="64m", cores=1))
    assert [finding.name for finding in findings if not finding.ok] == []
    assert [finding.name for finding in findings] == [
        *["python", "encoding", "java", "spark", "jars", "loopback"],
        *["memory", "cores", "tables", "checkpoints", "workspace"],
    ]


def test_each_engine_is_asked_for_what_it_needs(tmp_path: Path) -> None:
    environment = local(tmp_path)
    cluster = environment.model_copy(update={"engine": SparkEngine(kind="spark", master="spark://x:7077")})
    databricks = environment.model_copy(update={"engine": DatabricksEngine(kind="databricks")})
    assert {"java", "jars", "tables"} < {finding.name for finding in examine(cluster)}
    assert not {"memory", "cores"} & {finding.name for finding in examine(cluster)}
    assert [finding.name for finding in examine(databricks)] == ["python", "databricks-sdk", "workspace"]


def test_no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    assert line("java") == Finding(
        "java",
        False,
        "Java is not installed: JAVA_HOME is not set, and PATH has no java",
        "install Java 17 or 21 and put it on PATH, or set JAVA_HOME to its directory",
    )


def test_an_old_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PYTHON", (3, sys.version_info[1] + 1))
    assert line("python").fix.startswith(f"install Python 3.{sys.version_info[1] + 1} ")


def test_a_locale_that_java_cannot_open_files_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locale.getencoding", lambda: "ANSI_X3.4-1968")
    found = line("encoding")
    assert found.finding.startswith("the locale's encoding is ascii: Java cannot open files")
    assert found.fix == "unset LC_ALL, or set it to C.UTF-8"


def test_spark_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "version", absent)
    for name in ("spark", "jars"):
        assert line(name) == Finding(name, False, "pyspark is not installed", "pip install 'headrace[local]'")


@pytest.mark.parametrize(
    ("installed", "finding", "fix"),
    [
        (
            {"pyspark": "4.2.0", "delta-spark": "4.3.1"},
            "delta-spark is 4.3.1, and its jars for Spark 4.2.0 are 4.4.0",
            "pip install 'delta-spark==4.4.0'",
        ),
        (
            {"pyspark": "3.5.1", "delta-spark": "3.3.2"},
            "Spark 3.5.1 is not supported: Headrace has jars for Spark 4.1, 4.2",
            "pip install 'headrace[local]', which installs a supported Spark",
        ),
    ],
)
def test_versions_that_do_not_go_together(
    monkeypatch: pytest.MonkeyPatch, installed: dict[str, str], finding: str, fix: str
) -> None:
    monkeypatch.setattr(doctor, "version", installed.__getitem__)
    assert line("spark") == Finding("spark", False, finding, fix)


def test_jars_that_are_not_fetched_yet_are_no_mistake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "new"))
    assert line("jars").ok
    assert line("jars").finding == f"10 (23 MB) will be fetched into {tmp_path / 'new'} by the first run"
    assert not (tmp_path / "new").exists()


def test_jars_that_cannot_be_fetched_to_anywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "new"))
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert line("jars").finding == f"10 jars are to be fetched, and {jars.cache()} cannot be written"


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(java, "memory_available", lambda: 1 << 30)
    found = line("memory", local(tmp_path, memory="4g"))
    assert found.finding == "the engine needs 4g of memory, but only 1024m are free"
    assert bad(local(tmp_path, memory="1g", cores=1)) == []


def test_more_cores_than_there_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1}, raising=False)
    found = line("cores", local(tmp_path, cores=3))
    assert (found.finding, found.fix) == (
        "the engine's cores are 3, and this process has 2",
        "set engine.cores to 2 in the environment's file",
    )
    assert line("cores", local(tmp_path, cores=2)).ok


def test_a_place_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("in the way")
    environment = local(tmp_path, cores=1)
    assert bad(environment) == ["checkpoints"]
    assert f"{tmp_path / 'checkpoints'} is not a directory" in line("checkpoints", environment).finding


def test_a_place_that_is_not_mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.access
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != tmp_path and real(path, mode))
    assert bad(local(tmp_path, cores=1)) == ["tables", "checkpoints"]


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "ROOM", 1 << 60)
    assert line("tables", local(tmp_path)).fix == f"free at least {1 << 30} GB there"


def test_places_in_an_object_store_are_not_looked_at(tmp_path: Path) -> None:
    environment = local(tmp_path).model_copy(update={"checkpoints": "s3a://bucket/checkpoints"})
    assert "checkpoints" not in {finding.name for finding in examine(environment)}


def test_a_machine_that_lets_no_port_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: object, **settings: object) -> socket.socket:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("socket.create_server", refused)
    found = line("loopback")
    assert found.finding == "no port on 127.0.0.1 can be opened and reached: Permission denied"


def test_work_on_databricks_needs_a_login_and_its_sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in doctor.WORKSPACE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("DATABRICKS_CONFIG_FILE", raising=False)
    there = local(tmp_path).model_copy(update={"engine": DatabricksEngine(kind="databricks")})
    found = line("workspace", there)
    assert (found.ok, found.fix) == (
        False,
        "set DATABRICKS_HOST and DATABRICKS_TOKEN, or write profiles into that file",
    )
    assert line("workspace").ok
    (tmp_path / ".databrickscfg").write_text("[DEFAULT]\n")
    assert line("workspace", there) == Finding("workspace", True, f"profiles in {tmp_path}/.databrickscfg")

    def absent(package: str) -> str:
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(doctor, "version", absent)
    assert line("databricks-sdk", there).fix == "pip install 'headrace[deploy]'"


def test_workspace_variables_are_named_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABRICKS_HOST", "https://example.com")
    monkeypatch.setenv("DATABRICKS_TOKEN", "a-secret")
    assert line("workspace").finding == "DATABRICKS_HOST, DATABRICKS_TOKEN set"
    assert "a-secret" not in str(examine(None))
