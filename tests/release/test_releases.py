"""Test releases: reproducible builds, verification, and the record of uncommitted changes."""

from __future__ import annotations

import shutil
import subprocess
import zipfile

import pytest

from deployments import write_tiny
from headrace.errors import ConfigurationError, DataError, SetupError
from headrace.release import releases
from headrace.release.manifest import MANIFEST
from processes import copy_tree


@pytest.fixture
def tree(tmp_path):
    """Return a function that copies this repository's bundle into a directory of that name."""
    return lambda name: copy_tree(tmp_path / name)


def git(root, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", "-C", root, *identity, *arguments], check=True, capture_output=True)


def test_release_depends_on_content_and_not_on_the_directory(tree):
    root, copy = tree("root"), tree("copy")
    first, second = releases.build(root), releases.build(copy)
    assert (first.id, first.manifest.files) == (second.id, second.manifest.files)
    assert first.directory == root / "dist" / "releases" / first.id
    assert releases.build(root).id == first.id
    assert [path.name for path in (root / "dist" / "releases").iterdir()] == [first.id]

    wheel = first.manifest.wheels[0]
    assert wheel.startswith("wheels/headrace-0.1.0+g")
    assert {path.split("/")[0] for path in first.manifest.files} == {
        "wheels",
        "requirements.txt",
        "conf",
        "resources",
        "databricks.yml",
    }
    (copy / "src" / "headrace_shop" / "more.py").write_text("more = 1\n")
    assert releases.build(copy).manifest.wheels != first.manifest.wheels
    (copy / "src" / "headrace_shop" / "more.py").unlink()
    (copy / "conf" / "local.yml").write_text((copy / "conf" / "local.yml").read_text() + "# changed\n")
    third = releases.build(copy)
    assert third.manifest.wheels == first.manifest.wheels
    assert third.id != first.id


def test_wheels_in_vendor_are_packed(tree):
    root = tree("bundle")
    own = releases.build(root)
    (root / "vendor").mkdir()
    shutil.copy(own.directory / own.manifest.wheels[0], root / "vendor" / "other-1.0-py3-none-any.whl")
    assert "wheels/other-1.0-py3-none-any.whl" in releases.build(root).manifest.wheels


def test_uncommitted_changes_are_recorded(tree):
    root = tree("bundle")
    assert (releases.build(root).manifest.commit, releases.build(root).manifest.dirty) == ("", True)
    (root / ".gitignore").write_text("dist/\n__pycache__/\n")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "all")
    clean = releases.build(root).manifest
    assert (len(clean.commit), clean.dirty) == (40, False)
    (root / "notes.txt").write_text("not packed, but not committed\n")
    dirty = releases.build(root).manifest
    assert (dirty.id, dirty.dirty) == (clean.id, True)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "more")
    assert releases.build(root).manifest.dirty is False
    assert releases.find(root, clean.id).manifest.commit != clean.commit


@pytest.fixture(params=[True, False], ids=["in git", "outside of git"])
def small(request, tmp_path):
    """Return a function that adds files to a small bundle, and commits them if the bundle is in git."""
    root = write_tiny(tmp_path / "tiny")
    if not request.param:
        shutil.rmtree(root / ".git")

    def add(**files):
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        if request.param and files:
            git(root, "add", "-A", "-f", "--", *files)
            git(root, "commit", "-qm", "more")
        return root

    return add


def packed(built):
    """Return all paths of a release, and those of the bundle's own wheel in it."""
    (wheel,) = (path for path in built.manifest.wheels if path.startswith("wheels/tiny-"))
    with zipfile.ZipFile(built.directory / wheel) as archive:
        return {*built.manifest.files, *(f"wheel/{name}" for name in archive.namelist())}


def test_files_that_git_ignores_are_not_packed(small):
    root = small()
    (root / ".gitignore").write_text("dist/\nscratch*\n")
    for name in ("conf/scratch.yml", "conf/pipelines/scratch/x.yml", "conf/kept.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("a: b\n")
    is_in_git = (root / ".git").exists()
    assert releases.left_out(root) == (["conf/pipelines/scratch/x.yml", "conf/scratch.yml"] if is_in_git else [])
    files = packed(releases.build(root))
    assert "conf/kept.txt" in files
    assert ("conf/scratch.yml" in files, "conf/pipelines/scratch/x.yml" in files) == (not is_in_git, not is_in_git)


def test_wheel_in_vendor_that_git_ignores_is_an_error(small):
    root = small()
    (root / ".gitignore").write_text("dist/\n*.whl\n")
    (root / "vendor").mkdir()
    (root / "vendor" / "other-1.0-py3-none-any.whl").write_text("x")
    if not (root / ".git").exists():
        assert "wheels/other-1.0-py3-none-any.whl" in packed(releases.build(root))
        return
    with pytest.raises(ConfigurationError, match=r"vendor/other-1\.0-py3-none-any\.whl is ignored by git"):
        releases.build(root)


def test_hidden_files_are_not_packed(small):
    hidden = ("conf/.env", "conf/.old/a.yml", "resources/.b.yml", "src/tiny/.env", "src/tiny/.data/c.json")
    built = releases.build(small(**dict.fromkeys((*hidden, "vendor/.d.whl", "src/tiny/e.json"), "x")))
    assert "wheel/tiny/e.json" in packed(built)
    assert not [path for path in packed(built) if path.startswith(".") or "/." in path]


@pytest.mark.parametrize(
    "link",
    ["conf/a.yml", "resources/a", "src/tiny/a", "vendor/a.whl", "databricks.yml", "runtime.lock", "pyproject.toml"],
)
def test_link_out_of_the_bundle_is_an_error(small, tmp_path, link):
    root, outside = small(), tmp_path / "outside"
    outside.write_text("root:x\n")
    (root / link).parent.mkdir(exist_ok=True)
    (root / link).unlink(missing_ok=True)
    (root / link).symlink_to(outside)
    for build in (releases.build, releases.current):
        with pytest.raises(ConfigurationError) as error:
            build(root)
        assert [problem.message for problem in error.value.problems] == [
            f"link {link} leads out of the bundle, to {outside}"
        ]
    assert not list((root / "dist").glob("releases/*"))


def test_links_inside_the_bundle_are_packed_as_their_targets(small):
    root = small(**{"shared/a.yml": "a: 1\n"})
    for link in ("conf/more", "resources/more", "src/tiny/more"):
        (root / link).symlink_to(root / "shared")
    built = releases.build(root)
    assert {"conf/more/a.yml", "resources/more/a.yml", "wheel/tiny/more/a.yml"} <= packed(built)
    assert not any(path.is_symlink() for path in built.directory.rglob("*"))


CREDENTIALS = ("conf/tls.key", "resources/my_Secrets.txt", "src/tiny/certs/a.pem", "src/tiny/creds.json")


def test_files_that_look_like_credentials_are_packed_only_if_allowed(small):
    others = ("src/tiny/secrets.py", "vendor/secrets-1.0-py3-none-any.whl", "creds.json", "tests/a.pem")
    root = small(**dict.fromkeys((*CREDENTIALS, *others), ""))
    with pytest.raises(ConfigurationError) as error:
        releases.build(root)
    assert [problem.message for problem in error.value.problems] == [
        f"{path} looks like a credential" for path in CREDENTIALS
    ]
    assert list((root / "dist" / "releases").iterdir()) == []

    with pytest.raises(ConfigurationError) as error:
        releases.build(root, allowed=["conf", "creds.json", "conf/tls.ke", "src/tiny/*", *CREDENTIALS[2:]])
    assert len(error.value.problems) == 2

    confirmed = []
    built = releases.build(root, allowed=[f"./{CREDENTIALS[0]}"], confirm=lambda files: confirmed.append(files) or True)
    assert confirmed == [list(CREDENTIALS[1:])]
    assert {"conf/tls.key", "wheel/tiny/certs/a.pem", "wheel/tiny/creds.json"} <= packed(built)
    assert releases.build(root, allowed=[str(root / path) for path in CREDENTIALS]).id == built.id


def test_link_that_is_added_later_is_detected(tmp_path):
    root = write_tiny(tmp_path / "tiny")
    (root / "notes.txt").write_text("not committed, as the link")
    first = releases.current(root)
    assert releases.current(root).id == first.id
    (root / "src" / "tiny" / "link").symlink_to(tmp_path)
    with pytest.raises(ConfigurationError, match="leads out of the bundle"):
        releases.current(root)


def test_changed_missing_and_added_files_are_detected(tree):
    built = releases.build(tree("bundle"))
    releases.require_intact(built)
    (built.directory / "conf" / "local.yml").write_text("engine: {kind: local}\n")
    (built.directory / "conf" / "prod.yml").unlink()
    (built.directory / "conf" / "stray.yml").write_text("")
    with pytest.raises(DataError) as error:
        releases.require_intact(built)
    messages = [problem.message.removeprefix(f"release {built.id}: ") for problem in error.value.problems]
    assert messages == ["conf/local.yml was changed", "conf/prod.yml is missing", "conf/stray.yml was added"]

    manifest = built.directory / MANIFEST
    manifest.write_text(manifest.read_text().replace(built.id, "0" * releases.ID_LENGTH))
    (renamed,) = releases.list_releases(built.directory.parents[2])
    assert "the manifest does not match the id" in releases.verify(renamed)[-1].message


def test_release_id_may_be_shortened(tree):
    root = tree("bundle")
    built = releases.build(root)
    assert releases.find(root, built.id[:4]).id == built.id
    with pytest.raises(ConfigurationError, match="there is no release 'nothing'") as error:
        releases.find(root, "nothing")
    assert built.id in error.value.problems[0].fix


def test_bundle_without_a_lock_file_is_an_error(tree):
    root = tree("bundle")
    (root / releases.LOCK).unlink()
    with pytest.raises(ConfigurationError, match=r"the bundle has no runtime\.lock"):
        releases.build(root)
    assert not (root / "dist").exists()


def test_failed_build_leaves_no_files(tree):
    root = tree("bundle")
    (root / "pyproject.toml").write_text("[build-system]\nbuild-backend = 'no_such.build'\n")
    with pytest.raises(SetupError):
        releases.build(root)
    assert list((root / "dist" / "releases").iterdir()) == []
