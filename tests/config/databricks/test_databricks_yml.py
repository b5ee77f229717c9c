"""Read databricks.yml and the files it includes, and check its targets against conf/."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from headrace.config.databricks.databricks_yml import read_resources
from headrace.config.load import load_all, load_bundle
from headrace.errors import ConfigurationError

REPOSITORY = Path(__file__).parents[3]
WriteBundle = Callable[[Mapping[str, str | bytes | None]], Path]
Golden = Callable[[str, str], None]

DEV = """\
engine: {kind: databricks}
tables: {catalog: dev, schema: "shop_${user}"}
checkpoints: /Volumes/dev/shop/checkpoints/${user}
sources: {ticks: {kind: rate}}
values: {user: {required: true}}
"""
DATABRICKS = """\
bundle: {name: shop}
include: [resources/*.yml]
targets:
  dev: {mode: development}
"""
# YAML 1.1 readers parse `yes` as true. Databricks parses it as text, and so does Headrace.
TASKS = "tasks: [{task_key: a, existing_cluster_id: b, notebook_task: {notebook_path: /c}}]"
JOB = f"resources: {{jobs: {{orders: {{name: orders, tags: {{on: yes}}, {TASKS}}}}}}}\n"
BUNDLE = {"conf/dev.yml": DEV, "databricks.yml": DATABRICKS, "resources/orders.job.yml": JOB}

BAD_CASES: dict[str, dict[str, str | None]] = {
    "target_without_environment": {
        "databricks.yml": DATABRICKS + "  develop: {}\n  elsewhere: {}\n  local: {}\n",
        "conf/staging.yml": DEV,
    },
    "no_targets": {"databricks.yml": "bundle: {name: shop}\n"},
    "no_databricks_yml": {"databricks.yml": None},
    "include_matches_nothing": {
        "databricks.yml": DATABRICKS.replace("[resources/*.yml]", "[resources/*.yml, jobs/*.yml, /etc/*.yml, 5]")
    },
    "malformed_sections": {"databricks.yml": "bundle: shop\ninclude: a\ntargets: [dev]\nresources: []\n"},
    "unknown_mode": {"databricks.yml": DATABRICKS.replace("development", "develop")},
    "job_defined_twice": {"resources/again.yml": JOB},
    "duplicate_key_in_a_job": {"resources/orders.job.yml": JOB.replace("name: orders", "name: a, name: b")},
    "broken_resources": {"resources/orders.job.yml": "resources: {\n"},
    "same_tables_for_all_users": {"conf/dev.yml": DEV.replace("${user}", "all")},
    "optional_value_in_development": {"conf/dev.yml": DEV.replace("{required: true}", "ann")},
}


@pytest.mark.parametrize("case", BAD_CASES)
def test_bad_databricks_yml(case: str, write_bundle: WriteBundle, golden: Golden) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_all(write_bundle({**BUNDLE, **BAD_CASES[case]}))
    golden(f"databricks/{case}", str(caught.value))


def test_jobs_and_targets_are_read(write_bundle: WriteBundle) -> None:
    bundle = load_bundle(write_bundle(BUNDLE), "dev", {"user": "ann"})
    assert (bundle.name, [job.key for job in bundle.jobs["dev"]]) == ("shop", ["orders"])
    assert bundle.jobs["dev"][0].body["tags"] == {"on": "yes"}
    assert {name: target.mode for name, target in bundle.targets.items()} == {"dev": "development"}


def test_the_first_definition_of_a_job_is_kept(write_bundle: WriteBundle) -> None:
    again = JOB.replace("name: orders", "name: again")
    resources = read_resources(write_bundle({**BUNDLE, "resources/z.yml": again}))
    assert resources.jobs["orders"].body["name"] == "orders"
    assert [problem.message for problem in resources.problems] == ["job 'orders' is defined twice"]


def test_a_local_bundle_needs_no_databricks_yml(write_bundle: WriteBundle) -> None:
    bundle = load_bundle(write_bundle({}))
    assert (bundle.name, bundle.targets, bundle.jobs) == ("shop", {}, {})


def test_targets_of_the_repository_match_its_environments() -> None:
    bundle = load_bundle(REPOSITORY)
    assert {*bundle.targets, "local"} == {path.stem for path in (REPOSITORY / "conf").glob("*.yml")}
    assert [job.key for job in load_bundle(REPOSITORY, "prod").jobs["prod"]] == ["orders"]


@pytest.mark.parametrize("seed", range(8))
def test_damaged_files_are_reported_as_problems(seed: int, write_bundle: WriteBundle) -> None:
    generator = random.Random(seed)
    files = [
        "conf/pipelines/orders.yml",
        "conf/local.yml",
        "conf/dev.yml",
        "databricks.yml",
        "resources/orders.job.yml",
    ]
    texts = {name: (REPOSITORY / name).read_text() for name in files}
    for _ in range(25):
        name = generator.choice(files)
        root = write_bundle({**texts, "resources/a.yml": JOB, name: _damage(texts[name], generator)})
        try:
            load_all(root)
        except ConfigurationError as error:
            for problem in error.problems:
                assert problem.message and problem.fix
                assert problem.where.split(":")[0] in {*files, "conf/pipelines/p.yml", "resources/a.yml", "conf"}


def _damage(text: str, generator: random.Random) -> str:
    """Replace words in a few lines, and duplicate or drop some of the lines."""
    replacements = ["{}", "[]", "null", "5", "true", "x", "a: b", "- a", "'", '"', "{", "]", ":", "${x}", "&a", "*a"]
    replacements += ["\t", "orders"]
    lines = text.splitlines()
    for _ in range(generator.randint(1, 4)):
        number = generator.randrange(len(lines))
        parts = lines[number].split(" ")
        parts[generator.randrange(len(parts))] = generator.choice(replacements)
        damaged = [" ".join(parts), *([lines[number]] if generator.random() < 0.2 else [])]
        lines[number : number + 1] = damaged if generator.random() < 0.8 else []
        lines = lines or [""]
    return "\n".join(lines)


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="pathlib accepts this pattern since Python 3.13")
def test_invalid_include_pattern(write_bundle: WriteBundle) -> None:
    text = DATABRICKS.replace("[resources/*.yml]", '[resources/**.yml, "*.yml"]')
    with pytest.raises(ConfigurationError) as caught:
        load_all(write_bundle({**BUNDLE, "databricks.yml": text}))
    messages = {problem.message.partition(": Invalid")[0] for problem in caught.value.problems}
    # databricks.yml itself matches *.yml but is not included.
    assert messages == {
        "include: 'resources/**.yml' is not a valid pattern",
        "include: '*.yml' matches no file",
    }
