"""databricks.yml and its jobs: each thing that is validated, with its message, and the values that come out."""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from headrace import entry_points
from headrace.config.databricks.cron import cron_error, is_time_zone
from headrace.config.databricks.databricks_yml import read_resources
from headrace.config.databricks.job_definitions import Target, resolve_jobs
from headrace.config.databricks.job_grammar import job_grammar
from headrace.config.databricks.references import Unresolved
from headrace.config.databricks.task_calls import find_task_calls
from headrace.config.databricks.wheel_metadata import ENTRY_POINT_LAYERS, PARAMETERS, REQUIRED_PARAMETERS
from headrace.config.load import load_all, load_bundle, read_bundle
from headrace.config.locations import KeyLocations
from headrace.errors import ConfigurationError

REPOSITORY = Path(__file__).parents[3]
WriteBundle = Callable[[Mapping[str, str | bytes | None]], Path]
Golden = Callable[[str, str], None]

PIPELINE = """\
steps:
  land:
    layer: bronze
    reads: {rows: {source: ticks}}
    writes: {table: landed}
  count:
    layer: gold
    reads: {rows: {table: landed}}
    writes: {table: counted}
"""
DEV = """\
engine: {kind: databricks}
tables: {catalog: dev, schema: "shop_${user}"}
checkpoints: /Volumes/dev/shop/checkpoints/${user}
sources:
  ticks: {kind: rate}
values: {user: {required: true}}
"""
PROD = """\
engine: {kind: databricks}
tables: {catalog: main, schema: shop}
checkpoints: /Volumes/main/shop/checkpoints
trigger: available_now
sources:
  ticks: {kind: rate}
values: {user: everybody}
"""
DATABRICKS = """\
bundle: {name: shop}
include: [resources/*.yml]
variables:
  spark: {default: 17.3.x-scala2.13, description: the runtime}
  workers: 1
  user: {default: everybody}
artifacts: {shop: {type: whl}}
run_as: {service_principal_name: robot}
targets:
  dev:
    mode: development
    workspace: {host: "https://dev.example.com"}
    run_as: {user_name: ann@example.com}
    variables: {user: "${workspace.current_user.short_name}"}
  prod:
    mode: production
    default: true
    workspace: {host: "https://prod.example.com", root_path: "/Workspace/Shared/${bundle.name}"}
    permissions: [{level: CAN_VIEW, group_name: users}]
    variables: {workers: {default: 4}}
"""
JOB = """\
resources:
  jobs:
    orders:
      name: orders
      schedule: {quartz_cron_expression: '0 0 6 * * ?', timezone_id: UTC}
      job_clusters:
        - job_cluster_key: main
          new_cluster:
            spark_version: "${var.spark}"
            node_type_id: i3.xlarge
            num_workers: "${var.workers}"
      tasks:
        - task_key: land
          job_cluster_key: main
          python_wheel_task:
            package_name: headrace
            entry_point: bronze
            named_parameters: {pipeline: p, env: "${bundle.target}", value: "user=${var.user}"}
        - task_key: count
          job_cluster_key: main
          depends_on: [{task_key: land}]
          python_wheel_task:
            package_name: headrace
            entry_point: run
            parameters: [--pipeline, p, --env, "${bundle.target}", --step=count, "--value=user=${var.user}"]
      permissions: [{level: CAN_MANAGE_RUN, group_name: users}]
"""
ONE_TASK = JOB[: JOB.index("        - task_key: count")]
LANDS, COUNTS = (
    "task_key: land\n          job_cluster_key: main\n",
    "task_key: count\n          job_cluster_key: main\n",
)
WHOLE = {
    "conf/pipelines/p.yml": PIPELINE,
    "conf/dev.yml": DEV,
    "conf/prod.yml": PROD,
    "databricks.yml": DATABRICKS,
    "resources/orders.job.yml": JOB,
}
PROJECT = """\
[project]
name = "Shop_Jobs"
scripts = {shop = "shop:main"}
entry-points = {jobs = {revenue = "shop:revenue"}}
"""


def job(*changes: tuple[str, str], of: str = JOB) -> dict[str, str]:
    return {"resources/orders.job.yml": changed(of, *changes)}


def databricks(*changes: tuple[str, str]) -> dict[str, str]:
    return {"databricks.yml": changed(DATABRICKS, *changes)}


def changed(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


SCHEDULE = "      schedule: {quartz_cron_expression: '0 0 6 * * ?', timezone_id: UTC}\n"
CONTINUOUS = (SCHEDULE, "      continuous: {pause_status: UNPAUSED}\n")
WORKERS = '            num_workers: "${var.workers}"\n'
WHEEL = """\
          python_wheel_task:
            package_name: headrace
            entry_point: bronze
"""
INDENTED = "".join(f"    {line}\n" for line in WHEEL.splitlines())
LOOP = """\
task_key: land
          for_each_task:
            inputs: "[1, 2]"
            concurrency: 2
            task:
              task_key: land_one
              job_cluster_key: mian
"""
MINE = '{user: "${workspace.current_user.short_name}"}'

CASES: dict[str, dict[str, str]] = {
    # databricks.yml
    "keys_not_carried_out": databricks(
        ("artifacts:", "sync: {include: [a]}\npresets: {name_prefix: a}\nartifacts:"),
        ("  user: {default: everybody}", "  user: {default: everybody}\n  policy: {lookup: {cluster_policy: small}}"),
        ("    mode: production\n", "    mode: production\n    resources: {jobs: {orders: {name: other}}}\n"),
        ('host: "https://dev.example.com"', 'host: "https://dev.example.com", file_path: /a'),
    )
    | job(("  jobs:", "  pipelines: {orders: {name: orders}}\n  jobs:")),
    "unknown_keys_of_the_bundle": databricks(
        ("artifacts:", "artefacts: {}\nartifacts:"),
        ("    default: true\n", "    defaults: true\n"),
        ("{default: everybody}", "{defualt: everybody}"),
        ("level: CAN_VIEW", "level: CAN_VIEWW"),
    )
    | job(("  jobs:", "  job: {}\n  jobs:")),
    "wrong_types_of_the_bundle": databricks(
        ("{name: shop}", "{name: 5}"),
        ("    default: true\n", "    default: yes\n"),
        ("artifacts: {shop: {type: whl}}", "artifacts: [shop]"),
        ("[{level: CAN_VIEW, group_name: users}]", "{level: CAN_VIEW, group_name: users}"),
    )
    | {"resources/empty.yml": "resources: {jobs: {nothing: , text: a}}\n"},
    "only_in_databricks_yml": {"resources/more.yml": "variables: {a: 1}\ntargets: {dev: {}}\nresurces: {}\n"},
    "two_defaults": databricks(("    mode: development\n", "    mode: development\n    default: true\n")),
    "people": databricks(
        ("run_as: {service_principal_name: robot}", "run_as: {service_principal_name: robot, user_name: ann}"),
        ("level: CAN_VIEW, group_name: users", "level: CAN_VIEW"),
    )
    | job(("group_name: users", "group_name: users, user_name: ann")),
    "jobs_without_a_target": {
        "databricks.yml": "bundle: {name: shop}\ninclude: [resources/*.yml]\n",
    },
    # The grammar of a job
    "unknown_job_keys": job(
        ("      name: orders\n", "      nmae: orders\n      lifecycle: {prevent_destroy: true}\n"),
        ("task_key: land\n", "task_key: land\n          retries: 3\n"),
        ("node_type_id", "node_type"),
        ("            entry_point: bronze\n", "            entrypoint: bronze\n"),
    ),
    "merge_key_in_a_job": job(("task_key: count\n", "task_key: count\n          <<: {timeout_seconds: 60}\n")),
    "unknown_words": job(
        ("timezone_id: UTC", "timezone_id: UTC, pause_status: PAUSE"),
        ("CAN_MANAGE_RUN", "CAN_RUN"),
        ("node_type_id:", "data_security_mode: SINGLE\n            node_type_id:"),
    ),
    "wrong_types": job(
        ("      name: orders\n", "      name: 5\n      timeout_seconds: 60.5\n      tags: [a]\n"),
        (LANDS, f"{LANDS}          max_retries: two\n          disable_auto_optimization: yes\n"),
        ("pipeline: p,", "pipeline: p, conf: 1,"),
        ("depends_on: [{task_key: land}]", "depends_on: land"),
    ),
    # Variables and references
    "undefined_variable": job(
        ("${var.spark}", "${var.sparc}"), ("name: orders\n", 'name: "${bundle.target}-${env}"\n')
    ),
    "variable_without_a_value": databricks(
        ("  spark: {default: 17.3.x-scala2.13, description: the runtime}", "  spark: {description: the runtime}"),
        ("  user: {default: everybody}", "  user:"),
    ),
    "variable_not_declared": databricks(("{workers: {default: 4}}", "{wokers: 4, sparks: {a: 1}}")),
    "variables_in_a_circle": databricks(
        ("  workers: 1", '  workers: "${var.some}"\n  some: {default: "${var.workers}"}'),
        ("{workers: {default: 4}}", "{}"),
    ),
    "wrong_in_one_target": databricks(("{workers: {default: 4}}", "{workers: four}")),
    # Tasks
    "two_tasks_with_one_key": job((COUNTS + "          depends_on: [{task_key: land}]\n", LANDS)),
    "task_without_a_key": job(("- task_key: count\n          job", "- job")),
    "job_without_tasks": job((JOB[JOB.index("      tasks:") :], "")),
    "empty_tasks": job((JOB[JOB.index("      tasks:") :], "      tasks: []\n")),
    "depends_on_a_missing_task": job(("[{task_key: land}]", "[{task_key: lnd}]")),
    "depends_on_itself": job(("[{task_key: land}]", "[{task_key: land}, {task_key: count}]")),
    "depends_on_in_a_circle": job((LANDS, f"{LANDS}          depends_on: [{{task_key: count}}]\n")),
    "depends_on_in_a_long_circle": job(
        ("[{task_key: land}]", "[{task_key: third}]"),
        (LANDS, f"{LANDS}          depends_on: [{{task_key: count}}]\n"),
        (
            "      permissions:",
            "        - {task_key: third, existing_cluster_id: a, depends_on: [{task_key: land}]}\n      permissions:",
        ),
    ),
    # Clusters
    "undefined_job_cluster_key": job((COUNTS, COUNTS.replace("main", "mian"))),
    "undefined_environment_key": job((LANDS, "task_key: land\n          environment_key: light\n")),
    "job_cluster_twice": job(
        ("      tasks:\n", "        - {job_cluster_key: main, new_cluster: {policy_id: a}}\n      tasks:\n")
    ),
    "cluster_without_workers": job((WORKERS, "")),
    "cluster_with_no_worker": job((WORKERS, "            num_workers: 0\n")),
    "cluster_without_node_type": job(("            node_type_id: i3.xlarge\n", "")),
    # When it runs
    "continuous_with_a_schedule": job((SCHEDULE, CONTINUOUS[1] + SCHEDULE), of=ONE_TASK),
    "continuous_with_a_trigger": job(
        (SCHEDULE, CONTINUOUS[1] + "      trigger: {file_arrival: {url: /Volumes/a/b/c/}}\n"), of=ONE_TASK
    ),
    "continuous_with_depends_on": job(CONTINUOUS),
    "continuous_with_retries": job(CONTINUOUS, (LANDS, f"{LANDS}          max_retries: 3\n"), of=ONE_TASK),
    "continuous_with_several_runs": job(
        CONTINUOUS, ("name: orders\n", "name: orders\n      max_concurrent_runs: 4\n"), of=ONE_TASK
    ),
    "no_run_at_all": job(("name: orders\n", "name: orders\n      max_concurrent_runs: 0\n")),
    "bad_cron": job(("0 0 6 * * ?", "0 6 * * *")),
    "bad_cron_field": job(("0 0 6 * * ?", "0 0 25 * * ?")),
    "bad_cron_days": job(("0 0 6 * * ?", "0 0 6 * * *")),
    "bad_timezone": job(("timezone_id: UTC", "timezone_id: Europe/Berln")),
    "no_timezone": job((", timezone_id: UTC", "")),
    # What it calls
    "unknown_entry_point": job(("entry_point: bronze", "entry_point: bronce")),
    "unknown_entry_point_of_the_bundle": job(("package_name: headrace", "package_name: shop-jobs"))
    | {"pyproject.toml": PROJECT},
    "no_entry_point": job(("            entry_point: bronze\n", "")),
    "unknown_pipeline": job(("pipeline: p,", "pipeline: pp,"), ("--pipeline, p", "--pipeline, q")),
    "unknown_step": job(("--step=count", "--step=cuont"), ("pipeline: p,", "pipeline: p, step: lnd,")),
    "unknown_environment": job(('env: "${bundle.target}"', "env: prd")),
    "environment_of_another_target": job(('env: "${bundle.target}"', "env: prod")),
    "unknown_parameters": job(
        ("pipeline: p,", "pipline: p,"), ("--step=count", "--step=count, --follow=true, orders"), ("--env, ", "--nev, ")
    ),
    "parameters_twice": job(("entry_point: bronze\n", "entry_point: bronze\n            parameters: [--step=land]\n")),
    "no_step_of_the_layer": job(("entry_point: bronze", "entry_point: silver")),
    "required_value_not_given": job((', value: "user=${var.user}"', "")),
    "value_of_a_job": job(('value: "user=', 'value: "usr='), ("--value=user=${var.user}", "--value=user")),
    "two_tasks_run_one_step": job(("          depends_on: [{task_key: land}]\n", ""), (", --step=count", "")),
    "two_jobs_run_one_step": {
        "resources/more.yml": JOB.replace("    orders:\n", "    again:\n").replace("count", "counts", 1)
    },
    "a_loop_runs_one_step": job(
        (LANDS + WHEEL, LOOP + INDENTED), ("            named", "                named"), of=ONE_TASK
    ),
    # Secrets
    "secret_in_a_job": job(
        (
            "num_workers:",
            "spark_conf: {kafka.password: abc}\n            spark_env_vars: {DB_TOKEN: abc}\n            num_workers:",
        ),
        ("      permissions:", "      parameters: [{name: api_key, default: abc}]\n      permissions:"),
        ("--step=count", "--step=count, --value=secret=abc"),
    ),
    "secret_in_a_variable": databricks(
        ("  workers: 1", "  workers: 1\n  password: abc\n  shop_token:"),
        ("{workers: {default: 4}}", "{workers: 4, shop_token: {default: abc}}"),
        ("    variables: {user:", '    variables: {shop_token: "{{secrets/shop/token}}", user:'),
    ),
    "secret_in_conf": {
        "conf/prod.yml": changed(PROD, ("{kind: rate}", "{kind: rate, options: {kafka.sasl.jaas.config: abc}}"))
        + "settings: {fs.azure.account.key.shop: abc}\n",
        "conf/pipelines/p.yml": changed(PIPELINE, ("{source: ticks}", "{source: ticks, options: {password: abc}}")),
    },
    # Serverless
    "serverless_with_a_trigger_that_goes_on": job((LANDS, "task_key: land\n"), (COUNTS, "task_key: count\n"))
    | {
        "conf/prod.yml": changed(PROD, ("trigger: available_now", "trigger: {every: 30 seconds}")),
        "conf/dev.yml": DEV + "triggers: {count: default}\n",
    },
    "serverless_and_continuous": job(CONTINUOUS, (LANDS, "task_key: land\n"), of=ONE_TASK),
    # Development
    "same_value_for_everybody": databricks(('"${workspace.current_user.short_name}"', "ann")),
    "root_path_for_everybody": databricks(
        ('host: "https://dev.example.com"', 'host: "https://dev.example.com", root_path: /Workspace/Shared/dev')
    ),
    "one_root_path_for_two": {"conf/staging.yml": PROD}
    | databricks(
        (
            "{workers: {default: 4}}",
            "{workers: {default: 4}}\n  staging:\n"
            '    workspace: {host: "https://prod.example.com", root_path: /Workspace/Shared/shop}',
        )
    ),
    "development_shares_with_a_target": {
        name: changed(DEV, ("dev/shop/", "main/shop/")) for name in ("conf/prod.yml", "conf/sandbox.yml")
    }
    | databricks(
        ("{workers: {default: 4}}", f"{MINE}\n  sandbox: {{mode: development, variables: {MINE}}}"),
    ),
}


def _problems(root: Path) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load_all(root)
    return str(caught.value)


@pytest.mark.parametrize("case", CASES)
def test_bad_jobs(case: str, write_bundle: WriteBundle, golden: Golden) -> None:
    golden(f"databricks/{case}", _problems(write_bundle({**WHOLE, **CASES[case]})))


FINE: dict[str, dict[str, str]] = {
    "as it is": {},
    "a secret by reference": job(
        ("num_workers:", 'spark_conf: {a.password: "{{secrets/shop/a}}", token.url: a}\n            num_workers:')
    ),
    "serverless that ends": job((LANDS, "task_key: land\n"), (COUNTS, "task_key: count\n")),
    "a package that is not ours": job(
        ("package_name: headrace", "package_name: other"), ("entry_point: bronze", "entry_point: x")
    ),
    "the bundle's package": job(
        ("package_name: headrace", "package_name: shop-jobs"), ("entry_point: bronze", "entry_point: revenue")
    )
    | {"pyproject.toml": PROJECT},
    "continuous": job(CONTINUOUS, of=ONE_TASK),
    "one node": job((WORKERS, "            is_single_node: true\n")),
    "cluster by a policy": job(
        (WORKERS, "            policy_id: small\n"), ("            node_type_id: i3.xlarge\n", "")
    ),
    "values at run time": job(("pipeline: p,", 'pipeline: "{{job.parameters.pipeline}}",')),
    "a variable of many keys": databricks(
        ("  workers: 1", "  workers: 1\n  tags: {type: complex, default: {a: b}}"),
        ("{workers: {default: 4}}", "{workers: 4, tags: {a: c}}"),
    )
    | job(("      name: orders\n", '      name: orders\n      tags: "${var.tags}"\n')),
    "one step by two tasks, one after the other": job((", --step=count", "")),
    "two jobs, each its own steps": job(of=ONE_TASK)
    | {
        "resources/more.yml": changed(
            JOB,
            ("    orders:\n", "    again:\n"),
            ("entry_point: bronze", "entry_point: gold"),
            (JOB[JOB.index("        - task_key: count") :], ""),
        )
    },
}


@pytest.mark.parametrize("case", FINE)
def test_good_jobs(case: str, write_bundle: WriteBundle) -> None:
    load_all(write_bundle({**WHOLE, **FINE[case]}))


# What is taken from the repository's own bundle, and a word of what is then said.
TAKEN = {
    "task_key: orders\n          ": "'task_key' is missing",
    "          job_cluster_key: main\n": "runs serverless, but the job is continuous",
    'node_type_id: "${var.node_type}", ': "has no node type",
    'num_workers: "${var.workers}", ': "has no workers",
    "            entry_point: run\n": "'entry_point' is missing",
    "            package_name: headrace\n": "'package_name' is missing",
    "              pipeline: orders\n": "does not give the parameter 'pipeline'",
    '              env: "${bundle.target}"\n': "does not give the parameter 'env'",
    '              value: "user=${var.user}"\n': "does not give the value 'user'",
    "  node_type: {default: i3.xlarge}\n": "unknown variable 'node_type'",
    '    variables: {user: "${workspace.current_user.short_name}"}\n': "gives everybody the same value 'user'",
    "  - resources/*.yml\n": "include: must be a list",
}


@pytest.mark.parametrize("taken", TAKEN)
def test_nothing_can_be_taken_from_the_repositorys_bundle(taken: str, tmp_path: Path) -> None:
    for name in ("conf", "resources"):
        shutil.copytree(REPOSITORY / name, tmp_path / name)
    shutil.copy(REPOSITORY / "databricks.yml", tmp_path)
    load_all(tmp_path)
    (file,) = (file for file in (*tmp_path.glob("resources/*"), *tmp_path.glob("*.yml")) if taken in file.read_text())
    file.write_text(file.read_text().replace(taken, ""))
    assert TAKEN[taken] in _problems(tmp_path)


# ── The values that come out ──────────────────────────────────────────────────────────────────────────


def test_a_job_of_each_target(write_bundle: WriteBundle) -> None:
    root = write_bundle(WHOLE)
    jobs = {name: found[0] for bundle in load_all(root) for name, found in bundle.jobs.items()}
    workers = {name: job.body["job_clusters"][0]["new_cluster"]["num_workers"] for name, job in jobs.items()}
    assert workers == {"dev": 1, "prod": 4}  # a whole reference keeps the type
    given = {name: find_task_calls(job)[0].one("value") for name, job in jobs.items()}
    assert {name: one.value for name, one in given.items() if one} == {
        "dev": "user=${workspace.current_user.short_name}",
        "prod": "user=everybody",
    }
    assert jobs["dev"].body["tasks"][1]["python_wheel_task"]["parameters"][3] == "dev"
    assert jobs["prod"].where("tasks", 1, "task_key") == "resources/orders.job.yml:19"
    assert (jobs["prod"].key, jobs["prod"].target) == ("orders", "prod")


def test_the_jobs_of_the_targets_that_were_read(write_bundle: WriteBundle) -> None:
    root = write_bundle(WHOLE)
    assert set(load_bundle(root, "prod").jobs) == {"prod"}
    assert load_bundle(root, "local").jobs == {}


def test_targets(write_bundle: WriteBundle) -> None:
    targets = load_bundle(write_bundle(WHOLE)).targets
    assert targets["prod"] == Target(
        name="prod",
        mode="production",
        default=True,
        host="https://prod.example.com",
        root_path="/Workspace/Shared/shop",
        run_as={"service_principal_name": "robot"},
        permissions=({"level": "CAN_VIEW", "group_name": "users"},),
        variables={"spark": "17.3.x-scala2.13", "workers": 4, "user": "everybody"},
    )
    assert targets["dev"].run_as == {"user_name": "ann@example.com"}
    assert targets["dev"].is_development and not targets["dev"].default


def test_what_stands_above_all_targets_holds_in_each(write_bundle: WriteBundle) -> None:
    above = 'workspace: {profile: "shop-${bundle.target}", host: "https://a"}\n'
    above += "permissions: [{level: CAN_RUN, user_name: b}]\n"
    targets = load_bundle(write_bundle({**WHOLE, "databricks.yml": DATABRICKS + above})).targets
    assert (targets["dev"].profile, targets["dev"].host) == ("shop-dev", "https://dev.example.com")
    assert [one["level"] for one in targets["prod"].permissions] == ["CAN_RUN", "CAN_VIEW"]


def test_references(write_bundle: WriteBundle) -> None:
    variables = (
        '  a: {default: "${var.b}-${bundle.target}"}\n  b: {default: true}\n  c: {default: "${var.a}"}\nartifacts:'
    )
    root = write_bundle({**WHOLE, **databricks(("artifacts:", variables))})
    assert load_bundle(root).targets["dev"].variables["c"] == "true-dev"
    resources = read_resources(write_bundle({**WHOLE, **job(("name: orders", 'name: "${var.x}"'))}))
    (found,), problems = resolve_jobs(resources, resources.targets["dev"])
    assert isinstance(found.body["name"], Unresolved) and len(problems) == 1


def test_which_steps_a_task_runs(write_bundle: WriteBundle) -> None:
    reading = read_bundle(write_bundle(WHOLE), ["prod"])
    drafts = {draft.name: draft for draft in reading.drafts}
    assert [call.steps(drafts) for call in find_task_calls(reading.jobs["prod"][0])] == [("land",), ("count",)]


# ── What is known by heart ────────────────────────────────────────────────────────────────────────────


def test_the_grammar_is_what_the_sdk_declares() -> None:
    pytest.importorskip("databricks.sdk")
    script = REPOSITORY / "scripts" / "grammar" / "make.py"
    spec = importlib.util.spec_from_file_location("make_grammar", script)
    assert spec is not None and spec.loader is not None
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    assert make.FILE.read_text() == make.generate(), "run python scripts/grammar/make.py"


def test_the_grammar_refers_to_nothing_that_it_does_not_hold() -> None:
    grammar = job_grammar()
    named = {kind.strip("[{]}!") for keys in grammar.kinds.values() if isinstance(keys, dict) for kind in keys.values()}
    assert named - {"text", "whole number", "number", "truth", "anything"} <= set(grammar.kinds)
    assert [*grammar.against({"tasks": [{"task_key": "a"}]}, "JobSettings", KeyLocations("a.yml"), ())] == []


def test_the_entry_points_are_those_of_the_wheel() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert set(project["entry-points"]["headrace.jobs"]) == set(ENTRY_POINT_LAYERS)


def test_the_parameters_are_those_of_the_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    parsers: list[argparse.ArgumentParser] = []
    monkeypatch.setattr(entry_points._Arguments, "parse_args", lambda self, argv: parsers.append(self))
    entry_points._parse([])
    options = {action.dest: action.required for action in parsers[0]._actions}
    assert tuple(sorted(options)) == PARAMETERS
    assert {name for name, required in options.items() if required} == set(REQUIRED_PARAMETERS)


@pytest.mark.parametrize(
    "expression",
    [
        *("0 0 12 * * ?", "0 15 10 ? * MON-FRI", "0 0/5 14,18 * * ?", "0 10,44 14 ? 3 WED", "0 15 10 L * ?"),
        *("0 15 10 L-2 * ?", "0 15 10 LW * ?", "0 15 10 15W * ?", "0 15 10 ? * 6L", "0 15 10 ? * FRI#3"),
        *("0 15 10 ? * 6#3 2026-2030", "*/30 * * * * ?", "0 0 0 ? jan-mar sun"),
    ],
)
def test_good_cron(expression: str) -> None:
    assert cron_error(expression) == ""


@pytest.mark.parametrize(
    "expression",
    [
        *("", "* * * * *", "60 0 0 * * ?", "0 60 0 * * ?", "0 0 24 * * ?", "0 0 0 0 * ?", "0 0 0 32 * ?"),
        *("0 0 0 ? 13 1", "0 0 0 ? * 8", "0 0 0 ? * ?", "0 0 0 1 * 1", "0 0/0 0 * * ?", "0 0 0 45W * ?"),
        *("0 0 0 ? FOO 1", "0 0 0 ? * 6#6", "0 0 0 * * ? 1900", "0 , 0 * * ?", "a b c d e f", "@daily"),
    ],
)
def test_bad_cron(expression: str) -> None:
    assert cron_error(expression)


def test_time_zones() -> None:
    assert all(is_time_zone(name) for name in ("UTC", "Europe/Berlin", "GMT+2", "GMT-03:30", "America/New_York"))
    assert not any(is_time_zone(name) for name in ("Europe/Berln", "Europe", "", "../UTC", "GMT+2:99", "/etc/passwd"))
