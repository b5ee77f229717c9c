"""Test wheels: the same tree gives the same bytes, and the version changes with the content."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from importlib.metadata import distributions

import pytest

from headrace.errors import ConfigurationError, SetupError
from headrace.release import wheels

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


def build(root):
    """Build the wheel and name it after its content."""
    for directory in ("built", "stamped"):
        (root / directory).mkdir()
    return wheels.copy_with_content_hash(wheels.build_wheel(root, root / "built").file, root / "stamped")


def digest(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_wheel_depends_on_content_and_not_on_the_directory(tree):
    wheel, copy, changed = build(tree("bundle")), build(tree("copy")), build(tree("changed", code="x = 1\n"))
    assert (wheel.name, digest(wheel)) == (copy.name, digest(copy))
    assert wheel.name.startswith("small_shop-1.2.0+g")
    assert wheel.name != changed.name


def test_wheel_can_be_installed_with_its_version(tree, tmp_path):
    wheel = build(tree("bundle"))
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        names = set(archive.namelist())
        (record,) = (name for name in names if name.endswith(".dist-info/RECORD"))
        rows = [row.split(",") for row in archive.read(record).decode().splitlines()]
    assert {row[0] for row in rows} == names
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    code = "import importlib.metadata as m; print(m.version('small-shop'), m.entry_points(group='headrace.jobs'))"
    process = subprocess.run(
        [sys.executable, "-S", "-c", code], env={"PYTHONPATH": str(site)}, capture_output=True, text=True, check=True
    )
    version = wheel.name.split("-")[1]
    assert process.stdout.startswith(version)
    assert "small_shop:sell" in process.stdout


def test_installed_wheel_is_packed_again_byte_for_byte(tree, tmp_path):
    wheel, site, output = build(tree("bundle")), tmp_path / "site", tmp_path / "output"
    dist_info = f"{wheel.name.rsplit('-', 3)[0]}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    added = (
        "small_shop/__pycache__/__init__.cpython-311.pyc",
        f"{dist_info}/INSTALLER",
        f"{dist_info}/direct_url.json",
    )
    for name in added:  # as an installer does
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_text("pip")
    record = site / dist_info / "RECORD"
    record.write_text(record.read_text() + "".join(f"{name},,\n" for name in (*added, "../../../bin/sell")))
    output.mkdir()
    (installed,) = distributions(path=[str(site)])
    packed = wheels.pack_installed(installed, output)
    assert (packed.name, digest(packed)) == (wheel.name, digest(wheel))

    record.unlink()
    with pytest.raises(SetupError, match="small-shop was installed without a list of its files"):
        wheels.pack_installed(installed, output)


@pytest.mark.parametrize(
    ("project", "error", "message"),
    [
        (
            PROJECT.replace("hatchling.build", "no_such_backend.build"),
            SetupError,
            "no_such_backend.build is not installed",
        ),
        (PROJECT.replace('version = "1.2.0"', 'version = "x"'), SetupError, "the wheel cannot be built"),
        (PROJECT.replace("1.2.0", "1.2.0+mine"), ConfigurationError, "already has a local part"),
    ],
)
def test_wheel_that_cannot_be_built_is_an_error(tree, project, error, message):
    with pytest.raises(error, match=message) as raised:
        build(tree("bundle", project=project))
    assert raised.value.problems[0].fix


SETUPTOOLS = """\
[build-system]
requires = ["setuptools"]
[project]
name = "small-shop"
version = "1.2.0"
[tool.setuptools]
package-data = {small_shop = ["*", "**/*", ".*", "**/.*"]}
"""


@pytest.fixture(params=[PROJECT, SETUPTOOLS], ids=["hatchling", "setuptools"])
def project(request):
    """The pyproject.toml of a bundle. Older versions of setuptools need a second package to build wheels."""
    if request.param is SETUPTOOLS:
        pytest.importorskip("setuptools", minversion="70.1")
    return request.param


@pytest.mark.parametrize("in_git", [False, True], ids=["outside of git", "in git"])
def test_hidden_files_are_not_in_the_wheel(tree, project, in_git):
    root = tree("bundle", project=project)
    package = root / "src" / "small_shop"
    for name in (".env", "data/.cache/a.json", "data/.b.json", "data/c.json"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text("{}")
    if in_git:
        subprocess.run(["git", "init", "-q", root], check=True)
        subprocess.run(["git", "-C", root, "add", "-A", "-f"], check=True)
    wheel = build(root)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (record,) = (archive.read(name).decode() for name in names if name.endswith("/RECORD"))
    assert [name for name in names if "dist-info" not in name] == ["small_shop/__init__.py", "small_shop/data/c.json"]
    assert ".env" not in record and "/." not in record


def test_link_out_of_the_bundle_is_not_packed(tree, tmp_path, project):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "passwords.txt").write_text("root:x\n")
    for number, target in enumerate(("outside", "outside/passwords.txt")):
        root = tree(f"tree{number}", project=project)
        (root / "src" / "small_shop" / "link.txt").symlink_to(tmp_path / target)
        with pytest.raises(ConfigurationError, match=r"link src/small_shop/link\.txt leads out of the bundle") as error:
            build(root)
        assert error.value.problems[0].message.endswith(f"to {tmp_path / target}")


def test_link_that_is_not_packed_may_lead_out_of_the_bundle(tree, tmp_path):
    root = tree("bundle")
    (root / "data").symlink_to(tmp_path)
    assert build(root)


def test_sources_are_paths_in_the_bundle(tree, tmp_path, project):
    root = tree("bundle", project=project)
    package = root / "src" / "small_shop"
    (root / "certs").mkdir()
    (package / "data").mkdir()
    for path in (
        package / "creds.json",
        package / "data" / "creds.json",
        root / "certs" / "a.pem",
        root / "creds.json",
    ):
        path.write_text(str(path))
    (package / "certs").symlink_to("../../certs")
    for name in ("first", "second"):  # setuptools does not copy unchanged files again
        (tmp_path / name).mkdir()
        sources = wheels.build_wheel(root, tmp_path / name).sources
        assert [source for source in sources if source.endswith((".json", ".pem"))] == [
            "src/small_shop/certs/a.pem",
            "src/small_shop/creds.json",
            "src/small_shop/data/creds.json",
        ]


def test_source_of_a_file_packed_under_another_name_is_its_path(tree):
    renamed = '[tool.hatch.build.targets.wheel.force-include]\n"tls.key" = "small_shop/data.bin"\n'
    root = tree(
        "bundle", project=f'{PROJECT}[tool.hatch.build.targets.wheel]\npackages = ["src/small_shop"]\n{renamed}'
    )
    (root / "tls.key").write_text("k")
    (root / "built").mkdir()
    assert "tls.key" in wheels.build_wheel(root, root / "built").sources


def test_source_of_a_generated_file_is_its_path_in_the_wheel(tree):
    root = tree("bundle")
    (root / "built").mkdir()
    assert "small_shop-1.2.0.dist-info/METADATA" in wheels.build_wheel(root, root / "built").sources


def test_bundle_without_pyproject_is_an_error(tmp_path):
    with pytest.raises(ConfigurationError, match=r"the bundle has no pyproject\.toml"):
        wheels.build_wheel(tmp_path, tmp_path)
