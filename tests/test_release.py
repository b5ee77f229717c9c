"""Releases: reproducible, checked byte by byte, told apart when the tree was dirty."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from headrace import release
from headrace.errors import ConfigurationError, DataError, SetupError
from processes import copy_tree


@pytest.fixture
def tree(tmp_path):
    """A copy of this bundle, each in a directory of its own."""

    return lambda name: copy_tree(tmp_path / name)


def git(root, *arguments):
    known = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", "-C", root, *known, *arguments], check=True, capture_output=True)


def test_two_directories_give_the_same_release_and_a_change_another(tree):
    one, two = tree("one"), tree("two")
    first, second = release.build(one), release.build(two)
    assert (first.id, first.manifest.files) == (second.id, second.manifest.files)
    assert first.directory == one / "dist" / "releases" / first.id
    assert release.build(one).id == first.id
    assert [path.name for path in (one / "dist" / "releases").iterdir()] == [first.id]

    wheel = first.manifest.wheels[0]
    assert wheel.startswith("wheels/headrace-0.1.0+g")
    assert {path.split("/")[0] for path in first.manifest.files} == {
        "wheels",
        "requirements.txt",
        "conf",
        "resources",
        "databricks.yml",
    }
    (two / "src" / "headrace_shop" / "more.py").write_text("more = 1\n")
    assert release.build(two).manifest.wheels != first.manifest.wheels
    (two / "src" / "headrace_shop" / "more.py").unlink()
    (two / "conf" / "local.yml").write_text((two / "conf" / "local.yml").read_text() + "# changed\n")
    third = release.build(two)
    assert third.manifest.wheels == first.manifest.wheels
    assert third.id != first.id


def test_a_wheel_from_the_vendor_directory_goes_along(tree):
    root = tree("one")
    own = release.build(root)
    (root / "vendor").mkdir()
    shutil.copy(own.directory / own.manifest.wheels[0], root / "vendor" / "other-1.0-py3-none-any.whl")
    assert "wheels/other-1.0-py3-none-any.whl" in release.build(root).manifest.wheels


def test_a_dirty_tree_is_told_apart(tree):
    root = tree("one")
    assert (release.build(root).manifest.commit, release.build(root).manifest.dirty) == ("", True)
    (root / ".gitignore").write_text("dist/\n__pycache__/\n")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "all")
    clean = release.build(root).manifest
    assert (len(clean.commit), clean.dirty) == (40, False)
    (root / "notes.txt").write_text("not carried, but changed\n")
    dirty = release.build(root).manifest
    assert (dirty.id, dirty.dirty) == (clean.id, True)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "more")
    assert release.build(root).manifest.dirty is False
    assert release.find(root, clean.id).manifest.commit != clean.commit


def test_every_byte_is_verified(tree):
    built = release.build(tree("one"))
    release.require_whole(built)
    (built.directory / "conf" / "local.yml").write_text("engine: {kind: local}\n")
    (built.directory / "conf" / "prod.yml").unlink()
    (built.directory / "conf" / "stray.yml").write_text("")
    with pytest.raises(DataError) as error:
        release.require_whole(built)
    said = [problem.message.removeprefix(f"release {built.id}: ") for problem in error.value.problems]
    assert said == ["conf/local.yml was changed", "conf/prod.yml is missing", "conf/stray.yml was not in it"]

    manifest = built.directory / release.MANIFEST
    manifest.write_text(manifest.read_text().replace(built.id, "0" * release.DIGITS))
    (moved,) = release.releases(built.directory.parents[2])
    assert "its manifest does not give its id" in release.verify(moved)[-1].message


def test_a_release_is_found_by_the_beginning_of_its_id(tree):
    root = tree("one")
    built = release.build(root)
    assert release.find(root, built.id[:4]).id == built.id
    with pytest.raises(ConfigurationError, match="there is no release 'nothing'") as error:
        release.find(root, "nothing")
    assert built.id in error.value.problems[0].fix


def test_a_bundle_without_locked_requirements_is_not_built(tree):
    root = tree("one")
    (root / release.LOCK).unlink()
    with pytest.raises(ConfigurationError, match=r"the bundle has no runtime\.lock"):
        release.build(root)
    assert not (root / "dist").exists()


def test_nothing_is_left_when_a_build_fails(tree):
    root = tree("one")
    (root / "pyproject.toml").write_text("[build-system]\nbuild-backend = 'no_such.build'\n")
    with pytest.raises(SetupError):
        release.build(root)
    assert list((root / "dist" / "releases").iterdir()) == []
