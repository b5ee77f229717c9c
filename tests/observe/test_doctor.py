"""Test the checks of the machine: everything is ok here, and each missing thing is a finding with a fix."""

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


def finding_of(name: str, environment: Environment | None = None) -> Finding:
    return next(finding for finding in examine(environment) if finding.name == name)


def problems(environment: Environment) -> list[str]:
    return [finding.name for finding in examine(environment) if not finding.ok]


def test_this_machine_has_no_problems(tmp_path: Path) -> None:
    findings = examine(local(tmp_path, memory="64m", cores=1))
    assert [finding.name for finding in findings if not finding.ok] == []
    assert [finding.name for finding in findings] == [
        *["python", "encoding", "java", "spark", "jars", "loopback"],
        *["memory", "cores", "tables", "checkpoints", "workspace"],
    ]


def test_checks_depend_on_the_engine(tmp_path: Path) -> None:
    environment = local(tmp_path)
    cluster = environment.model_copy(update={"engine": SparkEngine(kind="spark", master="spark://x:7077")})
    databricks = environment.model_copy(update={"engine": DatabricksEngine(kind="databricks")})
    assert {"java", "jars", "tables"} < {finding.name for finding in examine(cluster)}
    assert not {"memory", "cores"} & {finding.name for finding in examine(cluster)}
    assert [finding.name for finding in examine(databricks)] == ["python", "databricks-sdk", "workspace"]


def test_missing_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    assert finding_of("java") == Finding(
        "java",
        False,
        "Java is not installed: JAVA_HOME is not set, and PATH has no java",
        "install Java 17 or 21 and put it on PATH, or set JAVA_HOME to its directory",
    )


def test_old_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "MIN_PYTHON", (3, sys.version_info[1] + 1))
    assert finding_of("python").fix.startswith(f"install Python 3.{sys.version_info[1] + 1} ")


def test_locale_that_is_not_utf_8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locale.getencoding", lambda: "ANSI_X3.4-1968")
    finding = finding_of("encoding")
    assert finding.finding.startswith("the locale's encoding is ascii: Java cannot open files")
    assert finding.fix == "unset LC_ALL, or set it to C.UTF-8"


def test_spark_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_not_found(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "version", raise_not_found)
    for name in ("spark", "jars"):
        assert finding_of(name) == Finding(name, False, "pyspark is not installed", "pip install 'headrace[local]'")


@pytest.mark.parametrize(
    ("installed", "finding", "fix"),
    [
        (
            {"pyspark": "4.2.0", "delta-spark": "4.3.1"},
            "delta-spark is 4.3.1, but the Delta jars for Spark 4.2.0 are 4.4.0",
            "pip install 'delta-spark==4.4.0'",
        ),
        (
            {"pyspark": "3.5.1", "delta-spark": "3.3.2"},
            "Spark 3.5.1 is not supported: Headrace has jars for Spark 4.1, 4.2",
            "pip install 'headrace[local]', which installs a supported Spark",
        ),
    ],
)
def test_incompatible_versions(
    monkeypatch: pytest.MonkeyPatch, installed: dict[str, str], finding: str, fix: str
) -> None:
    monkeypatch.setattr(doctor, "version", installed.__getitem__)
    assert finding_of("spark") == Finding("spark", False, finding, fix)


def test_missing_jars_are_downloaded_later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "new"))
    assert finding_of("jars").ok
    assert finding_of("jars").finding == f"the first run will download 10 jars (23 MB) into {tmp_path / 'new'}"
    assert not (tmp_path / "new").exists()


def test_cache_of_jars_that_is_not_writable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "new"))
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert finding_of("jars").finding == f"10 jars have to be downloaded, but {jars.cache()} is not writable"


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(java, "memory_available", lambda: 1 << 30)
    finding = finding_of("memory", local(tmp_path, memory="4g"))
    assert finding.finding == "the engine needs 4g of memory, but only 1024m are free"
    assert problems(local(tmp_path, memory="1g", cores=1)) == []


def test_more_cores_than_available(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1}, raising=False)
    finding = finding_of("cores", local(tmp_path, cores=3))
    assert (finding.finding, finding.fix) == (
        "engine.cores is 3, but only 2 are available to this process",
        "set engine.cores to 2 in the environment's file",
    )
    assert finding_of("cores", local(tmp_path, cores=2)).ok


def test_path_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("a file")
    environment = local(tmp_path, cores=1)
    assert problems(environment) == ["checkpoints"]
    assert f"{tmp_path / 'checkpoints'} is not a writable directory" in finding_of("checkpoints", environment).finding


def test_directory_that_is_not_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original_access = os.access
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != tmp_path and original_access(path, mode))
    assert problems(local(tmp_path, cores=1)) == ["tables", "checkpoints"]


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "MIN_FREE_BYTES", 1 << 60)
    assert finding_of("tables", local(tmp_path)).fix == f"free at least {1 << 30} GB on this disk"


def test_object_stores_are_not_checked(tmp_path: Path) -> None:
    environment = local(tmp_path).model_copy(update={"checkpoints": "s3a://bucket/checkpoints"})
    assert "checkpoints" not in {finding.name for finding in examine(environment)}


def test_loopback_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def create_server(*args: object, **settings: object) -> socket.socket:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("socket.create_server", create_server)
    finding = finding_of("loopback")
    assert finding.finding == "cannot open a port on 127.0.0.1 and connect to it: Permission denied"


def test_databricks_needs_a_login_and_the_sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in doctor.WORKSPACE_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("DATABRICKS_CONFIG_FILE", raising=False)
    databricks = local(tmp_path).model_copy(update={"engine": DatabricksEngine(kind="databricks")})
    finding = finding_of("workspace", databricks)
    assert (finding.ok, finding.fix) == (
        False,
        "set DATABRICKS_HOST and DATABRICKS_TOKEN, or add a profile to that file",
    )
    assert finding_of("workspace").ok
    (tmp_path / ".databrickscfg").write_text("[DEFAULT]\n")
    assert finding_of("workspace", databricks) == Finding("workspace", True, f"profiles in {tmp_path}/.databrickscfg")

    def raise_not_found(package: str) -> str:
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(doctor, "version", raise_not_found)
    assert finding_of("databricks-sdk", databricks).fix == "pip install 'headrace[deploy]'"


def test_values_of_workspace_variables_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABRICKS_HOST", "https://example.com")
    monkeypatch.setenv("DATABRICKS_TOKEN", "a-secret")
    assert finding_of("workspace").finding == "DATABRICKS_HOST, DATABRICKS_TOKEN set"
    assert "a-secret" not in str(examine(None))
