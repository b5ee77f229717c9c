"""`headrace build`: what it prints, and what it refuses."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from headrace.cli import main
from processes import copy_tree


@pytest.fixture
def bundle(tmp_path):
    return copy_tree(tmp_path / "shop")


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_a_release_is_built_and_checked(bundle, golden):
    built = run("build", "-C", bundle)
    assert built.exit_code == 0, built.output
    (release,) = (bundle / "dist" / "releases").iterdir()
    told = re.sub(r"g[0-9a-f]{8}", "gCONTENT", built.output.replace(release.name, "ID"))
    golden("cli/build", told)

    checked = run("build", "--check", release.name[:5], "-C", bundle)
    assert checked.output.splitlines()[0] == f"release {release.name}: every byte is as it was built"
    facts = json.loads(run("build", "--check", release.name, "-C", bundle, "-o", "json").output)
    assert (facts["id"], facts["directory"]) == (release.name, str(release))

    (release / "databricks.yml").write_text("bundle: {name: other}\n")
    changed = run("build", "--check", release.name, "-C", bundle)
    assert (changed.exit_code, changed.stdout) == (1, "")
    golden("cli/build_changed", changed.stderr.replace(str(bundle), "BUNDLE").replace(release.name, "ID"))


def test_a_bundle_with_mistakes_is_not_built(bundle):
    (bundle / "conf" / "local.yml").write_text("engine: {kind: locl}\n")
    built = run("build", "-C", bundle)
    assert built.exit_code == 1
    assert "unknown kind 'locl'" in built.stderr
    assert not (bundle / "dist").exists()
