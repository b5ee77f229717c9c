"""Wheels: the same bytes from the same tree, and a version that changes with the content."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from importlib.metadata import distributions

import pytest

from headrace import wheels
from headrace.errors import ConfigurationError, SetupError

PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "small-shop"
version = "1.2.0"
[project.entry-points."headrace.jobs"]
sell = "small_shop:sell"
"""


@pytest.fixture
def tree(tmp_path):
    def write(name, code="def sell():\n    return 'sold'\n", project=PROJECT):
        root = tmp_path / name
        (root / "src" / "small_shop").mkdir(parents=True)
        (root / "src" / "small_shop" / "__init__.py").write_text(code)
        (root / "pyproject.toml").write_text(project)
        return root

    return write


def named(root):
    for place in ("built", "named"):
        (root / place).mkdir()
    return wheels.name_after_content(wheels.build_wheel(root, root / "built"), root / "named")


def digest(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_one_tree_gives_the_same_bytes_in_any_directory_and_another_code_another_version(tree):
    one, same, other = named(tree("one")), named(tree("elsewhere")), named(tree("other", code="x = 1\n"))
    assert (one.name, digest(one)) == (same.name, digest(same))
    assert one.name.startswith("small_shop-1.2.0+g")
    assert one.name != other.name


def test_a_named_wheel_can_be_installed_and_knows_its_version(tree, tmp_path):
    wheel = named(tree("one"))
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        names = set(archive.namelist())
        (record,) = (name for name in names if name.endswith(".dist-info/RECORD"))
        rows = [row.split(",") for row in archive.read(record).decode().splitlines()]
    assert {row[0] for row in rows} == names
    place = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    asked = "import importlib.metadata as m; print(m.version('small-shop'), m.entry_points(group='headrace.jobs'))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", asked], env={"PYTHONPATH": str(place)}, capture_output=True, text=True, check=True
    )
    version = wheel.name.split("-")[1]
    assert done.stdout.startswith(version)
    assert "small_shop:sell" in done.stdout


def test_an_installed_wheel_is_packed_again_byte_for_byte(tree, tmp_path):
    wheel, place, again = named(tree("one")), tmp_path / "site", tmp_path / "again"
    about = f"{wheel.name.rsplit('-', 3)[0]}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    added = ("small_shop/__pycache__/__init__.cpython-311.pyc", f"{about}/INSTALLER", f"{about}/direct_url.json")
    for name in added:  # by an installer
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text("pip")
    record = place / about / "RECORD"
    record.write_text(record.read_text() + "".join(f"{name},,\n" for name in (*added, "../../../bin/sell")))
    again.mkdir()
    (installed,) = distributions(path=[str(place)])
    packed = wheels.pack_installed(installed, again)
    assert (packed.name, digest(packed)) == (wheel.name, digest(wheel))

    record.unlink()
    with pytest.raises(SetupError, match="small-shop was installed without a list of its files"):
        wheels.pack_installed(installed, again)


@pytest.mark.parametrize(
    ("project", "error", "message"),
    [
        (
            PROJECT.replace("hatchling.build", "no_such_backend.build"),
            SetupError,
            "no_such_backend.build is not installed",
        ),
        (PROJECT.replace('version = "1.2.0"', 'version = "x"'), SetupError, "the wheel cannot be built"),
        (PROJECT.replace("1.2.0", "1.2.0+mine"), ConfigurationError, "has a local part already"),
    ],
)
def test_a_wheel_that_cannot_be_built_says_why(tree, project, error, message):
    with pytest.raises(error, match=message) as caught:
        named(tree("one", project=project))
    assert caught.value.problems[0].fix


def test_a_bundle_without_pyproject_has_no_wheel(tmp_path):
    with pytest.raises(ConfigurationError, match=r"the bundle has no pyproject\.toml"):
        wheels.build_wheel(tmp_path, tmp_path)
