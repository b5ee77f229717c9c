"""Test new bundles: all placeholders are filled in, all packages are locked, errors leave no files."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import zipfile
from pathlib import Path

import pytest

from headrace.errors import ConfigurationError, SetupError
from headrace.release import scaffold

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle that tests must not change."""
    directory = tmp_path_factory.mktemp("new") / "weather"
    scaffold.create_bundle("weather", directory)
    return directory


def pinned(lock: Path) -> dict[str, str]:
    """Return name -> version of the packages that have a hash in the lock file."""
    return dict(re.findall(r"^(\S+)==(\S+) \\\n    --hash=sha256:[0-9a-f]{64}", lock.read_text(), re.MULTILINE))


def test_all_placeholders_are_filled_in(bundle):
    for path in bundle.rglob("*"):
        assert "@" not in path.name and path.suffix != scaffold.SUFFIX
        if path.is_file() and path.suffix != ".whl":
            assert re.findall(r"@[A-Z0-9]+@", path.read_text()) == [], path


def test_scripts_are_executable(bundle):
    scripts = {path.name: os.access(path, os.X_OK) for path in (bundle / "scripts").iterdir()}
    assert scripts == {"env": False, "lock": True, "run": True, "test": True}  # env is sourced by the others


def test_own_wheel_contains_the_templates(bundle):
    (wheel,) = (bundle / "vendor").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("headrace/release/templates/")}
    source = REPOSITORY / "src"
    templates = source / "headrace" / "release" / "templates"
    assert packed == {str(file.relative_to(source)) for file in templates.rglob("*") if file.is_file()}
    assert packed


def test_own_wheel_is_locked(bundle):
    (wheel,) = (bundle / "vendor").iterdir()
    version, digest = wheel.name.split("-")[1], hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert (
        (bundle / "requirements.lock").read_text().startswith(f"headrace=={version} \\\n    --hash=sha256:{digest}\n")
    )


def test_versions_are_those_of_this_repository(bundle):
    for name in ("requirements.lock", "runtime.lock"):
        text = (bundle / name).read_text()
        assert "://" not in text and "--index" not in text
        assert len(pinned(bundle / name)) == len(re.findall("^[^ #]", text, re.MULTILINE))
    locked, expected = pinned(bundle / "requirements.lock"), pinned(REPOSITORY / "requirements.lock")
    del locked["headrace"]
    assert locked.items() < expected.items()
    assert {"pyspark", "delta-spark", "databricks-sdk", "pytest", "hatchling"} < locked.keys()
    assert pinned(bundle / "runtime.lock") == pinned(REPOSITORY / "runtime.lock")


@pytest.mark.parametrize(
    ("name", "similar"),
    [
        ("Weather", "weather"),
        ("weather-report", "weather_report"),
        ("WeatherReport", "weather_report"),
        ("__weather__", "weather"),
        ("2nd weather", "nd_weather"),
        ("../weather", "weather"),
        ("", "my_jobs"),
        ("2026", "my_jobs"),
        ("headrace", "my_jobs"),
        ("headrace_shop", "shop"),
        ("class", "class_jobs"),
        ("JSON", "json_jobs"),
        ("null", "null_jobs"),
        ("tests", "tests_jobs"),
        ("yaml", "yaml_jobs"),
        ("py4j", "py4j_jobs"),
        ("hatchling", "hatchling_jobs"),
    ],
)
def test_similar_name_is_suggested(name, similar):
    with pytest.raises(ConfigurationError) as error:
        scaffold.require_valid_name(name)
    assert error.value.problems[0].fix == f"headrace init {similar}"
    scaffold.require_valid_name(similar)


@pytest.mark.parametrize("name", ["weather", "shop2", "sensor_jobs", "a"])
def test_valid_names(name):
    scaffold.require_valid_name(name)


def test_failure_leaves_no_files(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "false")  # no wheel can be built with it
    with pytest.raises(SetupError, match="the wheel cannot be built"):
        scaffold.create_bundle("weather", tmp_path / "weather")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SetupError, match="the wheel cannot be built"):
        scaffold.create_bundle("weather", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_error_of_the_file_system_is_reported(tmp_path):
    with pytest.raises(SetupError, match="the bundle cannot be written: File name too long"):
        scaffold.create_bundle("weather", tmp_path / ("w" * 300))
