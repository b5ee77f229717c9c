"""Test the output and the errors of `headrace build`."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from deployments import write_tiny
from headrace.cli import main
from processes import copy_tree


@pytest.fixture
def bundle(tmp_path, without_spark):
    return copy_tree(tmp_path / "shop")


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_release_is_built_and_verified(bundle, golden):
    built = run("build", "-C", bundle)
    assert built.exit_code == 0, built.output
    (release,) = (bundle / "dist" / "releases").iterdir()
    golden("cli/build", re.sub(r"g[0-9a-f]{8}", "gCONTENT", built.output.replace(release.name, "ID")))

    verified = run("build", "--check", release.name[:5], "-C", bundle)
    assert verified.output.splitlines()[0] == f"release {release.name}: all files match the manifest"
    facts = json.loads(run("build", "--check", release.name, "-C", bundle, "-o", "json").output)
    assert (facts["id"], facts["directory"]) == (release.name, str(release))

    (release / "databricks.yml").write_text("bundle: {name: other}\n")
    changed = run("build", "--check", release.name, "-C", bundle)
    assert (changed.exit_code, changed.stdout) == (1, "")
    golden("cli/build_changed", changed.stderr.replace(str(bundle), "BUNDLE").replace(release.name, "ID"))


def test_steps_with_and_without_signatures_are_named(bundle, monkeypatch, golden):
    inferred = {"not_computed": "the schema of input 'rows' is inferred from its data"}
    local = {"orders": {"land": {"signature": {}}, "customers": inferred}, "other": {"count": {"signature": {}}}}
    report = {"environments": {"local": local, "prod": {**local, "other": {"count": inferred}}}}
    monkeypatch.setattr("headrace.release.signature_process._compute", lambda root: report)
    lines = run("build", "-C", bundle).stdout.splitlines()
    golden("cli/build_signatures", "\n".join(line for line in lines if "signature" in line))


def test_build_without_signatures_names_the_reason(tiny_bundle, without_spark):
    allowed = ("--allow-file", "conf/tls.key", "--allow-file", "src/tiny/creds.json")
    built = run("build", "-C", tiny_bundle, *allowed, "-o", "json")
    lines = ["computing the signatures of the steps …", "signatures not computed: the tests do not start Spark"]
    assert (built.exit_code, built.stderr.splitlines()) == (0, lines)
    assert json.loads(built.stdout)["signatures"]["not_computed"] == "the tests do not start Spark"


def test_bundle_with_errors_is_not_built(bundle):
    (bundle / "conf" / "local.yml").write_text("engine: {kind: locl}\n")
    built = run("build", "-C", bundle)
    assert built.exit_code == 1
    assert "unknown kind 'locl'" in built.stderr
    assert not (bundle / "dist").exists()


@pytest.fixture
def tiny_bundle(tmp_path, without_spark):
    """A small bundle with two files that look like credentials."""
    files = {"conf/tls.key": "k", "src/tiny/creds.json": "{}"}
    return write_tiny(tmp_path / "tiny", files)


def test_links_that_cannot_be_packed_are_reported(tiny_bundle, tmp_path, golden):
    (tmp_path / "passwords").write_text("root:x")
    (tiny_bundle / "conf" / "local.yml").unlink()
    (tiny_bundle / "conf" / "local.yml").symlink_to(tmp_path / "passwords")
    (tiny_bundle / "resources" / "old").symlink_to("../archive")
    (tiny_bundle / "resources" / "all").symlink_to("..")
    failed = run("build", "-C", tiny_bundle)
    assert failed.exit_code == 1
    golden("cli/build_links", failed.stderr.replace(str(tmp_path), "DIRECTORY"))


def test_credentials_are_an_error_without_a_terminal(tiny_bundle, golden):
    failed = run("build", "-C", tiny_bundle)
    assert (failed.exit_code, failed.stdout) == (1, "")
    golden("cli/build_credentials", failed.stderr.replace(str(tiny_bundle), "BUNDLE"))
    assert run("build", "-C", tiny_bundle, "--allow-file", "conf/tls.key").exit_code == 1
    allowed = ("--allow-file", "conf/tls.key", "--allow-file", "src/tiny/creds.json")
    assert run("build", "-C", tiny_bundle, *allowed).exit_code == 0


@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1), ("", 1)])
def test_packing_credentials_is_confirmed_in_a_terminal(tiny_bundle, monkeypatch, typed, code):
    monkeypatch.setattr("headrace.cli.confirmation._is_interactive", lambda: True)
    command = ["build", "-C", str(tiny_bundle), "--allow-file", "conf/tls.key", "-o", "json"]
    result = CliRunner().invoke(main, command, input=typed)
    assert result.exit_code == code
    assert (
        "These files look like credentials:\n  src/tiny/creds.json\nPack them into the release? [y/N]" in result.stderr
    )
    assert bool(result.stdout) is not bool(code)
    if code == 0:  # the question goes to stderr, not into the JSON
        assert "conf/tls.key" in json.loads(result.stdout)["files"]
