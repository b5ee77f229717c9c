"""Lists in the README and the documentation are complete."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_every_package_is_in_the_architecture() -> None:
    architecture = (ROOT / "docs" / "architecture.md").read_text()
    (table,) = re.findall(r"\| layer \| package \| holds \|\n(?:\|.*\n)+", architecture)
    listed = set(re.findall(r"`(\w+)`", "\n".join(row.split("|")[2] for row in table.splitlines()[2:])))
    package = ROOT / "src" / "headrace"
    modules = {path.stem for path in package.glob("*.py")} | {
        path.parent.name for path in package.glob("*/__init__.py")
    }
    assert listed == modules - {"__init__", "__main__"}


def test_every_script_is_named() -> None:
    scripts = {path.name for path in (ROOT / "scripts").iterdir() if path.is_file()} - {
        "env",
        "lock",
        "lock-jars",
        "retired_words.py",
    }
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    assert {name for name in scripts if f"`scripts/{name}" in contributing} == scripts


def test_the_example_of_an_environment_is_the_local_one() -> None:
    example = re.search(r"```yaml\n# conf/local.yml\n(.*?)```", README, re.DOTALL)
    assert example is not None
    assert example[1] == (ROOT / "conf" / "local.yml").read_text()


def test_the_example_is_the_pipeline_that_runs() -> None:
    example = re.search(r"```yaml\n# conf/pipelines/orders.yml\nsteps:\n(.*?)```", README, re.DOTALL)
    assert example is not None
    assert example[1] in (ROOT / "conf" / "pipelines" / "orders.yml").read_text()
