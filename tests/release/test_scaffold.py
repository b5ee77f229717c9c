"""A new bundle from the templates: nothing left to fill in, everything locked, all of it or nothing."""

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
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle, to be read only."""
    directory = tmp_path_factory.mktemp("made") / "weather"
    scaffold.make("weather", directory)
    return directory


def pinned(lock: Path) -> dict[str, str]:
    """name -> version of each package that the lock names with its hash."""
    return dict(re.findall(r"^(\S+)==(\S+) \\\n    --hash=sha256:[0-9a-f]{64}", lock.read_text(), re.MULTILINE))


def test_nothing_is_left_to_fill_in(made):
    for path in made.rglob("*"):
        assert "@" not in path.name and path.suffix != scaffold.SUFFIX
        if path.is_file() and path.suffix != ".whl":
            assert re.findall(r"@[A-Z0-9]+@", path.read_text()) == [], path


def test_scripts_can_be_run(made):
    scripts = {path.name: os.access(path, os.X_OK) for path in (made / "scripts").iterdir()}
    assert scripts == {"env": False, "lock": True, "run": True, "test": True}  # env is read by the others


def test_the_wheel_can_make_bundles_itself(made):
    (wheel,) = (made / "vendor").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("headrace/templates/")}
    templates = REPOSITORY / "src" / "headrace" / "templates"
    assert packed == {f"headrace/templates/{f.relative_to(templates)}" for f in templates.rglob("*") if f.is_file()}


def test_the_wheel_is_locked(made):
    (wheel,) = (made / "vendor").iterdir()
    version, digest = wheel.name.split("-")[1], hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert (made / "requirements.lock").read_text().startswith(f"headrace=={version} \\\n    --hash=sha256:{digest}\n")


def test_the_locks_are_those_of_this_repository_without_its_tools(made):
    for name in ("requirements.lock", "runtime.lock"):
        text = (made / name).read_text()
        assert "://" not in text and "--index" not in text
        assert len(pinned(made / name)) == len(re.findall("^[^ #]", text, re.MULTILINE))
    here, there = pinned(made / "requirements.lock"), pinned(REPOSITORY / "requirements.lock")
    del here["headrace"]
    assert here.items() < there.items()
    assert {"pyspark", "delta-spark", "databricks-sdk", "pytest", "hatchling"} < here.keys()
    assert pinned(made / "runtime.lock") == pinned(REPOSITORY / "runtime.lock")


@pytest.mark.parametrize(
    ("name", "near"),
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
def test_another_name_is_proposed(name, near):
    with pytest.raises(ConfigurationError) as refused:
        scaffold.require_name(name)
    assert refused.value.problems[0].fix == f"headrace init {near}"
    scaffold.require_name(near)


@pytest.mark.parametrize("name", ["weather", "shop2", "sensor_jobs", "a"])
def test_names_that_can_be(name):
    scaffold.require_name(name)


def test_nothing_is_left_when_something_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "false")  # which no wheel can be built with
    with pytest.raises(SetupError, match="the wheel cannot be built"):
        scaffold.make("weather", tmp_path / "weather")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SetupError, match="the wheel cannot be built"):
        scaffold.make("weather", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_the_disk_says_is_told(tmp_path):
    with pytest.raises(SetupError, match="the bundle cannot be written: File name too long"):
        scaffold.make("weather", tmp_path / ("w" * 300))
