"""Test which files a release may pack: hidden files, links, credentials."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import ConfigurationError
from headrace.release import packing


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / "conf" / "deep").mkdir(parents=True)
    for name in ("conf/a.yml", "conf/deep/b.yml", "shared.yml"):
        (root / name).write_text("a: 1\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "c.yml").write_text("a: 1\n")
    return root


def messages(root: Path, *names: str) -> list[str]:
    with pytest.raises(ConfigurationError) as error:
        packing.list_files(root, names or ("conf",))
    assert all(problem.fix and problem.where for problem in error.value.problems)
    return [problem.message.replace(str(root.parent), "…") for problem in error.value.problems]


@pytest.mark.parametrize("path", [".env", "a/.git/config", ".a/b", "a/b/.c"])
def test_hidden_files_and_files_in_hidden_directories(path: str) -> None:
    assert packing.is_hidden(path)


@pytest.mark.parametrize("path", ["a", "a.b/c.d", "a/b.", "tiny-1.0.dist-info/RECORD"])
def test_dot_inside_a_name_does_not_hide_a_file(path: str) -> None:
    assert not packing.is_hidden(path)


def test_hidden_files_and_caches_are_not_listed(bundle: Path) -> None:
    for name in ("conf/.env", "conf/.deep/a.yml", "conf/deep/.b.yml", "conf/__pycache__/c.pyc"):
        (bundle / name).parent.mkdir(exist_ok=True)
        (bundle / name).write_text("")
    assert packing.list_files(bundle, ("conf", "shared.yml", "missing")) == [
        "conf/a.yml",
        "conf/deep/b.yml",
        "shared.yml",
    ]


def test_links_inside_the_bundle_are_followed(bundle: Path) -> None:
    (bundle / "conf" / "shared.yml").symlink_to("../shared.yml")
    (bundle / "more").mkdir()
    (bundle / "more" / "d.yml").write_text("")
    (bundle / "conf" / "more").symlink_to(bundle / "more")
    assert packing.list_files(bundle, ("conf",)) == [
        "conf/a.yml",
        "conf/deep/b.yml",
        "conf/more/d.yml",
        "conf/shared.yml",
    ]


def test_bundle_may_be_reached_through_a_link(bundle: Path) -> None:
    (bundle / "conf" / "shared.yml").symlink_to("../shared.yml")
    link = bundle.with_name("link")
    link.symlink_to(bundle)
    assert "conf/shared.yml" in packing.list_files(link, ("conf",))


def test_all_links_that_cannot_be_packed_are_reported_together(bundle: Path) -> None:
    conf = bundle / "conf"
    (conf / "file.yml").symlink_to("../../outside/c.yml")
    (conf / "deep" / "directory").symlink_to(bundle.parent / "outside")
    (conf / "dangling").symlink_to("../nowhere")
    (conf / "loop").symlink_to(".")
    (conf / "twice").symlink_to("file.yml")
    assert messages(bundle) == [
        "link conf/dangling leads to …/shop/nowhere, which does not exist",
        "link conf/deep/directory leads out of the bundle, to …/outside",
        "link conf/file.yml leads out of the bundle, to …/outside/c.yml",
        "link conf/loop leads to …/shop/conf, which contains it",
        "link conf/twice leads out of the bundle, to …/outside/c.yml",
    ]


def test_links_to_each_other_do_not_cause_an_endless_loop(bundle: Path) -> None:
    (bundle / "conf" / "other").symlink_to("../other")
    (bundle / "other").mkdir()
    (bundle / "other" / "conf").symlink_to("../conf")
    (bundle / "other" / "self").symlink_to(".")
    assert messages(bundle) == [
        "link conf/other/conf leads to …/shop/conf, which contains it",
        "link conf/other/self leads to …/shop/other, which contains it",
    ]


def test_link_in_a_parent_directory_is_reported(bundle: Path) -> None:
    (bundle / "vendor").symlink_to("../outside")
    assert messages(bundle, "vendor/c.yml") == ["link vendor leads out of the bundle, to …/outside"]


@pytest.mark.parametrize(
    "name",
    [".env", ".env.prod", "a.pem", "B.PEM", "tls.key", "creds.json", "Credentials", "my-secret.yml", "SECRETS.toml"],
)
def test_credential_names_are_recognised(tmp_path: Path, name: str) -> None:
    assert packing.find_credentials(tmp_path, [f"conf/{name}", "conf/a.yml"]) == [f"conf/{name}"]


@pytest.mark.parametrize("name", ["secrets.py", "Credentials.PY", "a.yml", "keys.yml", "sacred.yml", "env", "a.pem.md"])
def test_other_names_are_not_credentials(tmp_path: Path, name: str) -> None:
    assert packing.find_credentials(tmp_path, [f"secrets/{name}"]) == []


def test_link_to_a_credential_is_a_credential(bundle: Path) -> None:
    (bundle / ".env").write_text("")
    (bundle / "conf" / "settings.yml").symlink_to("../.env")
    assert packing.find_credentials(bundle, packing.list_files(bundle, ("conf",))) == ["conf/settings.yml"]


def test_fix_names_the_option_that_allows_a_credential(tmp_path: Path) -> None:
    packing.raise_for_credentials(tmp_path, [])
    with pytest.raises(ConfigurationError) as error:
        packing.raise_for_credentials(tmp_path, ["conf/a.pem", "conf/my secret.yml"])
    assert [problem.fix.partition(": ")[2] for problem in error.value.problems] == [
        "--allow-file conf/a.pem",
        "--allow-file 'conf/my secret.yml'",
    ]
