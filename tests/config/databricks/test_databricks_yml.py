"""databricks.yml: the part that is read, and its agreement with conf/."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

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
# Old readers of YAML see `yes` as true; Databricks' reads text, and so do we.
TASKS = "tasks: [{task_key: a, existing_cluster_id: b, notebook_task: {notebook_path: /c}}]"
JOB = f"resources: {{jobs: {{orders: {{name: orders, tags: {{on: yes}}, {TASKS}}}}}}}\n"
WHOLE = {"conf/dev.yml": DEV, "databricks.yml": DATABRICKS, "resources/orders.job.yml": JOB}

CASES: dict[str, dict[str, str | None]] = {
    "target_without_environment": {
        "databricks.yml": DATABRICKS + "  develop: {}\n  elsewhere: {}\n  local: {}\n",
        "conf/staging.yml": DEV,
    },
    "no_targets": {"databricks.yml": "bundle: {name: shop}\n"},
    "no_databricks_yml": {"databricks.yml": None},
    "include_matches_nothing": {
        "databricks.yml": DATABRICKS.replace("[resources/*.yml]", "[resources/*.yml, jobs/*.yml, /etc/*.yml, 5]")
    },
    "wrong_shapes": {"databricks.yml": "bundle: shop\ninclude: a\ntargets: [dev]\nresources: []\n"},
    "unknown_mode": {"databricks.yml": DATABRICKS.replace("development", "develop")},
    "job_written_twice": {"resources/again.yml": JOB},
    "duplicate_key_in_a_job": {"resources/orders.job.yml": JOB.replace("name: orders", "name: a, name: b")},
    "broken_resources": {"resources/orders.job.yml": "resources: {\n"},
    "shared_by_everybody": {"conf/dev.yml": DEV.replace("${user}", "all")},
    "value_not_required": {"conf/dev.yml": DEV.replace("{required: true}", "ann")},
}


@pytest.mark.parametrize("case", CASES)
def test_bad_databricks_yml(case: str, write_bundle: WriteBundle, golden: Golden) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_all(write_bundle({**WHOLE, **CASES[case]}))
    golden(f"databricks/{case}", str(caught.value))


def test_the_part_that_is_read(write_bundle: WriteBundle) -> None:
    bundle = load_bundle(write_bundle(WHOLE), "dev", {"user": "ann"})
    assert (bundle.name, [job.key for job in bundle.jobs["dev"]]) == ("shop", ["orders"])
    assert bundle.jobs["dev"][0].body["tags"] == {"on": "yes"}
    assert {name: target.mode for name, target in bundle.targets.items()} == {"dev": "development"}


def test_a_bundle_for_this_machine_needs_no_databricks_yml(write_bundle: WriteBundle) -> None:
    bundle = load_bundle(write_bundle({}))
    assert (bundle.name, bundle.targets, bundle.jobs) == ("shop", {}, {})


def test_the_repository_has_the_same_targets_and_environments() -> None:
    bundle = load_bundle(REPOSITORY)
    assert {*bundle.targets, "local"} == {path.stem for path in (REPOSITORY / "conf").glob("*.yml")}
    assert [job.key for job in load_bundle(REPOSITORY, "prod").jobs["prod"]] == ["orders"]


@pytest.mark.parametrize("seed", range(8))
def test_whatever_the_files_say_the_answer_is_a_list_of_problems(seed: int, write_bundle: WriteBundle) -> None:
    chance = random.Random(seed)
    files = [
        "conf/pipelines/orders.yml",
        "conf/local.yml",
        "conf/dev.yml",
        "databricks.yml",
        "resources/orders.job.yml",
    ]
    texts = {name: (REPOSITORY / name).read_text() for name in files}
    for _ in range(25):
        name = chance.choice(files)
        root = write_bundle({**texts, "resources/a.yml": JOB, name: _damaged(texts[name], chance)})
        try:
            load_all(root)
        except ConfigurationError as error:
            for problem in error.problems:
                assert problem.message and problem.fix
                assert problem.where.split(":")[0] in {*files, "conf/pipelines/p.yml", "resources/a.yml", "conf"}


def _damaged(text: str, chance: random.Random) -> str:
    words = [
        "{}",
        "[]",
        "null",
        "5",
        "true",
        "x",
        "a: b",
        "- a",
        "'",
        '"',
        "{",
        "]",
        ":",
        "${x}",
        "&a",
        "*a",
        "\t",
        "orders",
    ]
    lines = text.splitlines()
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(lines))
        parts = lines[at].split(" ")
        parts[chance.randrange(len(parts))] = chance.choice(words)
        kept = [" ".join(parts), *([lines[at]] if chance.random() < 0.2 else [])]
        lines[at : at + 1] = kept if chance.random() < 0.8 else []
        lines = lines or [""]
    return "\n".join(lines)


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="Python takes it for one since then")
def test_an_include_that_is_no_pattern(write_bundle: WriteBundle) -> None:
    text = DATABRICKS.replace("[resources/*.yml]", '[resources/**.yml, "*.yml"]')
    with pytest.raises(ConfigurationError) as caught:
        load_all(write_bundle({**WHOLE, "databricks.yml": text}))
    told = {problem.message.partition(": Invalid")[0] for problem in caught.value.problems}
    assert told == {"include: 'resources/**.yml'", "include: '*.yml' matches no file"}  # itself it does not include
