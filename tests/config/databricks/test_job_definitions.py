"""Check the jobs and targets of databricks.yml: each problem with its message, and the resolved values."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from headrace.config.databricks.databricks_yml import read_resources
from headrace.config.databricks.job_definitions import Target, resolve_jobs
from headrace.config.databricks.references import Unresolved
from headrace.config.databricks.task_calls import find_task_calls
from headrace.config.load import load_all, load_bundle, read_bundle
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
LOCAL = """\
engine: {{kind: local}}
tables: {{root: {tables}}}
checkpoints: {checkpoints}
sources: {{ticks: {{kind: rate}}}}
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
  spark: {default: 18.x-scala2.13, description: the runtime}
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
VARIABLES = DATABRICKS[DATABRICKS.index("variables:") : DATABRICKS.index("artifacts:")]
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
LAND_TASK, COUNT_TASK = (
    "task_key: land\n          job_cluster_key: main\n",
    "task_key: count\n          job_cluster_key: main\n",
)
BUNDLE = {
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


def with_job(*changes: tuple[str, str], text: str = JOB) -> dict[str, str]:
    return {"resources/orders.job.yml": replace_once(text, *changes)}


def with_bundle_file(*changes: tuple[str, str]) -> dict[str, str]:
    return {"databricks.yml": replace_once(DATABRICKS, *changes)}


def replace_once(text: str, *changes: tuple[str, str]) -> str:
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
USER_VARIABLE = '{user: "${workspace.current_user.short_name}"}'

BAD_CASES: dict[str, dict[str, str]] = {
    # databricks.yml
    "unsupported_keys": with_bundle_file(
        ("artifacts:", "sync: {include: [a]}\npresets: {name_prefix: a}\nartifacts:"),
        ("  user: {default: everybody}", "  user: {default: everybody}\n  policy: {lookup: {cluster_policy: small}}"),
        ("    mode: production\n", "    mode: production\n    resources: {jobs: {orders: {name: other}}}\n"),
        ('host: "https://dev.example.com"', 'host: "https://dev.example.com", file_path: /a'),
    )
    | with_job(("  jobs:", "  pipelines: {orders: {name: orders}}\n  jobs:")),
    "unknown_bundle_keys": with_bundle_file(
        ("artifacts:", "artefacts: {}\nartifacts:"),
        ("    default: true\n", "    defaults: true\n"),
        ("{default: everybody}", "{defualt: everybody}"),
        ("level: CAN_VIEW", "level: CAN_VIEWW"),
    )
    | with_job(("  jobs:", "  job: {}\n  jobs:")),
    "wrong_bundle_types": with_bundle_file(
        ("{name: shop}", "{name: 5}"),
        ("    default: true\n", "    default: yes\n"),
        ("artifacts: {shop: {type: whl}}", "artifacts: [shop]"),
        ("[{level: CAN_VIEW, group_name: users}]", "{level: CAN_VIEW, group_name: users}"),
    )
    | {"resources/empty.yml": "resources: {jobs: {nothing: , text: a}}\n"},
    "bundle_keys_in_included_file": {"resources/more.yml": "variables: {a: 1}\ntargets: {dev: {}}\nresurces: {}\n"},
    "two_defaults": with_bundle_file(("    mode: development\n", "    mode: development\n    default: true\n")),
    "identities": with_bundle_file(
        ("run_as: {service_principal_name: robot}", "run_as: {service_principal_name: robot, user_name: ann}"),
        ("level: CAN_VIEW, group_name: users", "level: CAN_VIEW"),
    )
    | with_job(("group_name: users", "group_name: users, user_name: ann")),
    "jobs_without_a_target": {
        "databricks.yml": "bundle: {name: shop}\ninclude: [resources/*.yml]\n",
    },
    # The grammar of a job
    "unknown_job_keys": with_job(
        ("      name: orders\n", "      nmae: orders\n      lifecycle: {prevent_destroy: true}\n"),
        ("task_key: land\n", "task_key: land\n          retries: 3\n"),
        ("node_type_id", "node_type"),
        ("            entry_point: bronze\n", "            entrypoint: bronze\n"),
    ),
    "merge_key_in_a_job": with_job(("task_key: count\n", "task_key: count\n          <<: {timeout_seconds: 60}\n")),
    "unknown_enumeration_values": with_job(
        ("timezone_id: UTC", "timezone_id: UTC, pause_status: PAUSE"),
        ("CAN_MANAGE_RUN", "CAN_RUN"),
        ("node_type_id:", "data_security_mode: SINGLE\n            node_type_id:"),
    ),
    "wrong_types": with_job(
        ("      name: orders\n", "      name: 5\n      timeout_seconds: 60.5\n      tags: [a]\n"),
        (LAND_TASK, f"{LAND_TASK}          max_retries: two\n          disable_auto_optimization: yes\n"),
        ("pipeline: p,", "pipeline: p, conf: 1,"),
        ("depends_on: [{task_key: land}]", "depends_on: land"),
    ),
    # Variables and references
    "undefined_variable": with_job(
        ("${var.spark}", "${var.sparc}"), ("name: orders\n", 'name: "${bundle.target}-${env}"\n')
    ),
    "variable_without_a_value": with_bundle_file(
        ("  spark: {default: 18.x-scala2.13, description: the runtime}", "  spark: {description: the runtime}"),
        ("  user: {default: everybody}", "  user:"),
    ),
    "variable_not_declared": with_bundle_file(("{workers: {default: 4}}", "{wokers: 4, sparks: {a: 1}}")),
    "variables_in_a_cycle": with_bundle_file(
        ("  workers: 1", '  workers: "${var.some}"\n  some: {default: "${var.workers}"}'),
        ("{workers: {default: 4}}", "{}"),
    ),
    "wrong_in_one_target": with_bundle_file(("{workers: {default: 4}}", "{workers: four}")),
    # Tasks
    "duplicate_task_key": with_job((COUNT_TASK + "          depends_on: [{task_key: land}]\n", LAND_TASK)),
    "task_without_a_key": with_job(("- task_key: count\n          job", "- job")),
    "job_without_tasks": with_job((JOB[JOB.index("      tasks:") :], "")),
    "empty_tasks": with_job((JOB[JOB.index("      tasks:") :], "      tasks: []\n")),
    "depends_on_a_missing_task": with_job(("[{task_key: land}]", "[{task_key: lnd}]")),
    "depends_on_itself": with_job(("[{task_key: land}]", "[{task_key: land}, {task_key: count}]")),
    "dependency_cycle": with_job((LAND_TASK, f"{LAND_TASK}          depends_on: [{{task_key: count}}]\n")),
    "long_dependency_cycle": with_job(
        ("[{task_key: land}]", "[{task_key: third}]"),
        (LAND_TASK, f"{LAND_TASK}          depends_on: [{{task_key: count}}]\n"),
        (
            "      permissions:",
            "        - {task_key: third, existing_cluster_id: a, depends_on: [{task_key: land}]}\n      permissions:",
        ),
    ),
    # Clusters
    "undefined_job_cluster_key": with_job((COUNT_TASK, COUNT_TASK.replace("main", "mian"))),
    "undefined_environment_key": with_job((LAND_TASK, "task_key: land\n          environment_key: light\n")),
    "duplicate_job_cluster_key": with_job(
        ("      tasks:\n", "        - {job_cluster_key: main, new_cluster: {policy_id: a}}\n      tasks:\n")
    ),
    "cluster_without_workers": with_job((WORKERS, "")),
    "cluster_with_zero_workers": with_job((WORKERS, "            num_workers: 0\n")),
    "cluster_without_node_type": with_job(("            node_type_id: i3.xlarge\n", "")),
    # Schedules
    "continuous_with_a_schedule": with_job((SCHEDULE, CONTINUOUS[1] + SCHEDULE), text=ONE_TASK),
    "continuous_with_a_trigger": with_job(
        (SCHEDULE, CONTINUOUS[1] + "      trigger: {file_arrival: {url: /Volumes/a/b/c/}}\n"), text=ONE_TASK
    ),
    "continuous_with_depends_on": with_job(CONTINUOUS),
    "continuous_with_retries": with_job(
        CONTINUOUS, (LAND_TASK, f"{LAND_TASK}          max_retries: 3\n"), text=ONE_TASK
    ),
    "continuous_with_concurrent_runs": with_job(
        CONTINUOUS, ("name: orders\n", "name: orders\n      max_concurrent_runs: 4\n"), text=ONE_TASK
    ),
    "zero_concurrent_runs": with_job(("name: orders\n", "name: orders\n      max_concurrent_runs: 0\n")),
    "bad_cron": with_job(("0 0 6 * * ?", "0 6 * * *")),
    "bad_cron_field": with_job(("0 0 6 * * ?", "0 0 25 * * ?")),
    "bad_cron_days": with_job(("0 0 6 * * ?", "0 0 6 * * *")),
    "bad_timezone": with_job(("timezone_id: UTC", "timezone_id: Europe/Berln")),
    "no_timezone": with_job((", timezone_id: UTC", "")),
    # Entry points and parameters
    "unknown_entry_point": with_job(("entry_point: bronze", "entry_point: bronce")),
    "unknown_bundle_entry_point": with_job(("package_name: headrace", "package_name: shop-jobs"))
    | {"pyproject.toml": PROJECT},
    "no_entry_point": with_job(("            entry_point: bronze\n", "")),
    "unknown_pipeline": with_job(("pipeline: p,", "pipeline: pp,"), ("--pipeline, p", "--pipeline, q")),
    "unknown_step": with_job(("--step=count", "--step=cuont"), ("pipeline: p,", "pipeline: p, step: lnd,")),
    "unknown_environment": with_job(('env: "${bundle.target}"', "env: prd")),
    "environment_of_another_target": with_job(('env: "${bundle.target}"', "env: prod")),
    "unknown_parameters": with_job(
        ("pipeline: p,", "pipline: p,"), ("--step=count", "--step=count, --follow=true, orders"), ("--env, ", "--nev, ")
    ),
    "both_kinds_of_parameters": with_job(
        ("entry_point: bronze\n", "entry_point: bronze\n            parameters: [--step=land]\n")
    ),
    "no_step_of_the_layer": with_job(("entry_point: bronze", "entry_point: silver")),
    "missing_required_value": with_job((', value: "user=${var.user}"', "")),
    "missing_parameters_in_a_list": with_job((' --env, "${bundle.target}",', ""), (', "--value=user=${var.user}"', "")),
    "invalid_values_of_a_job": with_job(
        ('value: "user=', 'value: "usr='), ("--value=user=${var.user}", "--value=user")
    ),
    "two_tasks_with_one_step": with_job(("          depends_on: [{task_key: land}]\n", ""), (", --step=count", "")),
    "two_jobs_with_one_step": {
        "resources/more.yml": JOB.replace("    orders:\n", "    again:\n").replace("count", "counts", 1)
    },
    "parallel_loop_over_one_step": with_job(
        (LAND_TASK + WHEEL, LOOP + INDENTED), ("            named", "                named"), text=ONE_TASK
    ),
    # Secrets
    "secret_in_a_job": with_job(
        (
            "num_workers:",
            "spark_conf: {kafka.password: abc}\n            spark_env_vars: {DB_TOKEN: abc}\n            num_workers:",
        ),
        ("      permissions:", "      parameters: [{name: api_key, default: abc}]\n      permissions:"),
        ("--step=count", "--step=count, --value=secret=abc"),
    ),
    "secret_in_a_variable": with_bundle_file(
        ("  workers: 1", "  workers: 1\n  password: abc\n  shop_token:"),
        ("{workers: {default: 4}}", "{workers: 4, shop_token: {default: abc}}"),
        ("    variables: {user:", '    variables: {shop_token: "{{secrets/shop/token}}", user:'),
    ),
    "secret_in_conf": {
        "conf/prod.yml": replace_once(PROD, ("{kind: rate}", "{kind: rate, options: {kafka.sasl.jaas.config: abc}}"))
        + "settings: {fs.azure.account.key.shop: abc}\n",
        "conf/pipelines/p.yml": replace_once(
            PIPELINE, ("{source: ticks}", "{source: ticks, options: {password: abc}}")
        ),
    },
    # Serverless
    "serverless_pipeline": with_job((LAND_TASK, "task_key: land\n"), (COUNT_TASK, "task_key: count\n")),
    "shared_cluster": with_job(("num_workers:", "data_security_mode: USER_ISOLATION\n            num_workers:")),
    "runtime_with_an_old_spark": with_bundle_file(("18.x-scala2.13", "17.3.x-photon-scala2.13")),
    "serverless_and_continuous": with_job(
        CONTINUOUS, (LAND_TASK, "task_key: land\n"), ("package_name: headrace", "package_name: other"), text=ONE_TASK
    ),
    # Development
    "same_value_for_all_users": with_bundle_file(('"${workspace.current_user.short_name}"', "ann")),
    "root_path_for_all_users": with_bundle_file(
        ('host: "https://dev.example.com"', 'host: "https://dev.example.com", root_path: /Workspace/Shared/dev')
    ),
    "root_path_of_another_target": {"conf/staging.yml": PROD}
    | with_bundle_file(
        (
            "{workers: {default: 4}}",
            "{workers: {default: 4}}\n  staging:\n"
            '    workspace: {host: "https://prod.example.com", root_path: /Workspace/Shared/shop}',
        )
    ),
    "copied_environment": {"conf/staging.yml": PROD}
    | with_bundle_file(("{workers: {default: 4}}", "{workers: {default: 4}}\n  staging: {}")),
    "environment_of_one_user_has_the_tables_of_another_environment": {
        "conf/prod.yml": replace_once(PROD, ("catalog: main, schema: shop", "catalog: dev, schema: shop_ann"))
    }
    | with_bundle_file(('variables: {user: "${workspace.current_user.short_name}"}', "variables: {user: ann}")),
    "environments_without_a_target_share_checkpoints": {
        "conf/local.yml": LOCAL.format(tables="t", checkpoints="c"),
        "conf/other.yml": LOCAL.format(tables="u", checkpoints="./c/"),
    },
    "development_shares_tables_with_a_target": {
        name: replace_once(DEV, ("dev/shop/", "main/shop/")) for name in ("conf/prod.yml", "conf/sandbox.yml")
    }
    | with_bundle_file(
        ("{workers: {default: 4}}", f"{USER_VARIABLE}\n  sandbox: {{mode: development, variables: {USER_VARIABLE}}}"),
    ),
}


def _problems(root: Path) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load_all(root)
    return str(caught.value)


@pytest.mark.parametrize("case", BAD_CASES)
def test_bad_jobs(case: str, write_bundle: WriteBundle, golden: Golden) -> None:
    golden(f"databricks/{case}", _problems(write_bundle({**BUNDLE, **BAD_CASES[case]})))


GOOD_CASES: dict[str, dict[str, str]] = {
    "unchanged": {},
    "secret by reference": with_job(
        ("num_workers:", 'spark_conf: {a.password: "{{secrets/shop/a}}", token.url: a}\n            num_workers:')
    ),
    "runtime known at run time": with_bundle_file(("18.x-scala2.13", "custom:mine")),
    "another package": with_job(
        ("package_name: headrace", "package_name: other"), ("entry_point: bronze", "entry_point: x")
    ),
    "the bundle's package": with_job(
        ("package_name: headrace", "package_name: shop-jobs"), ("entry_point: bronze", "entry_point: revenue")
    )
    | {"pyproject.toml": PROJECT},
    "continuous job": with_job(CONTINUOUS, text=ONE_TASK),
    "single node cluster": with_job((WORKERS, "            is_single_node: true\n")),
    "cluster with a policy": with_job(
        (WORKERS, "            policy_id: small\n"), ("            node_type_id: i3.xlarge\n", "")
    ),
    "pipeline known at run time": with_job(("pipeline: p,", 'pipeline: "{{job.parameters.pipeline}}",')),
    "complex variable": with_bundle_file(
        ("  workers: 1", "  workers: 1\n  tags: {type: complex, default: {a: b}}"),
        ("{workers: {default: 4}}", "{workers: 4, tags: {a: c}}"),
    )
    | with_job(("      name: orders\n", '      name: orders\n      tags: "${var.tags}"\n')),
    "two tasks with one step in sequence": with_job((", --step=count", "")),
    "two jobs with different steps": with_job(text=ONE_TASK)
    | {
        "resources/more.yml": replace_once(
            JOB,
            ("    orders:\n", "    again:\n"),
            ("entry_point: bronze", "entry_point: gold"),
            (JOB[JOB.index("        - task_key: count") :], ""),
        )
    },
}


@pytest.mark.parametrize("case", GOOD_CASES)
def test_good_jobs(case: str, write_bundle: WriteBundle) -> None:
    load_all(write_bundle({**BUNDLE, **GOOD_CASES[case]}))


# Lines to remove from the repository's own bundle, and a part of the message that follows.
REMOVALS = {
    "task_key: orders\n          ": "'task_key' is missing",
    "          job_cluster_key: main\n": "runs a pipeline serverless",
    'node_type_id: "${var.node_type}", ': "has no node type",
    'num_workers: "${var.workers}", ': "has no workers",
    "            entry_point: run\n": "'entry_point' is missing",
    "            package_name: headrace\n": "'package_name' is missing",
    "              pipeline: orders\n": "does not pass the parameter 'pipeline'",
    '              env: "${bundle.target}"\n': "does not pass the parameter 'env'",
    '              value: "user=${var.user}"\n': "does not pass the value 'user'",
    "  node_type: {default: i3.xlarge}\n": "unknown variable 'node_type'",
    '    variables: {user: "${workspace.current_user.short_name}"}\n': "passes a value for 'user' that is the same",
    "  - resources/*.yml\n": "include: must be a list",
}


@pytest.mark.parametrize("line", REMOVALS)
def test_every_line_of_the_repository_bundle_is_required(line: str, tmp_path: Path) -> None:
    for name in ("conf", "resources"):
        shutil.copytree(REPOSITORY / name, tmp_path / name)
    shutil.copy(REPOSITORY / "databricks.yml", tmp_path)
    load_all(tmp_path)
    files = (*tmp_path.glob("resources/*"), *tmp_path.glob("*.yml"))
    (file,) = (file for file in files if line in file.read_text())
    file.write_text(file.read_text().replace(line, ""))
    assert REMOVALS[line] in _problems(tmp_path)


# Mistakes with a single cause, and the start of the only message that is reported.
SINGLE_CAUSES: dict[str, tuple[dict[str, str], str]] = {
    "misspelled variables": (
        with_bundle_file(("variables:\n  spark", "varables:\n  spark")),
        "unknown key 'varables'",
    ),
    "malformed variables": (
        with_bundle_file((VARIABLES, "variables: [a]\n")),
        "variables: must",
    ),
    "misspelled targets": (with_bundle_file(("targets:", "tragets:")), "unknown key 'tragets'"),
    "unreadable databricks.yml": (
        with_bundle_file(("bundle: {name: shop}", "bundle: {name: shop")),
        "not valid YAML",
    ),
    "misspelled target": (
        {"conf/staging.yml": DEV} | with_bundle_file(("  prod:\n", "  stagin:\n    mode: development\n  prod:\n")),
        "target 'stagin' has no environment",
    ),
    "variable that uses a cyclic variable": (
        with_bundle_file(
            ("  workers: 1", '  workers: "${var.cycle}"\n  cycle: "${var.cycle}"'), (": {default: 4}", ": 1")
        ),
        "variable 'cycle' refers to itself, directly or through other variables",
    ),
    "unsupported lookup": (
        with_bundle_file(("  workers: 1", "  workers: {lookup: {pool: small}}")),
        "variable 'workers': Headrace does not support 'lookup'",
    ),
    "unknown variable in a root path": (
        with_bundle_file(
            ("targets:", 'workspace: {root_path: "/Workspace/${var.rot}"}\ntargets:'),
            (', root_path: "/Workspace/Shared/${bundle.name}"', ""),
        ),
        "workspace, root_path: unknown variable 'rot'",
    ),
    "undeclared value in the tables": (
        {"conf/dev.yml": DEV.replace("shop_${user}", "shop_${name}")},
        "tables, schema: '${name}' is not declared",
    ),
    "misspelled tasks": (with_job(("      tasks:\n", "      taks:\n")), "job 'orders': unknown key 'taks'"),
    "malformed tasks": (
        with_job((JOB[JOB.index("      tasks:") :], "      tasks: 5\n")),
        "job 'orders', tasks: must",
    ),
    "misspelled job_clusters": (
        with_job(("      job_clusters:\n", "      job_cluster:\n")),
        "job 'orders': unknown key 'job_cluster'",
    ),
    "malformed job_clusters": (
        with_job((JOB[JOB.index("      job_clusters:") : JOB.index("      tasks:")], "      job_clusters: {}\n")),
        "job 'orders', job_clusters: must",
    ),
    "misspelled job_cluster_key": (
        with_job(("- job_cluster_key: main", "- job_cluster_kye: main")),
        "job 'orders', job cluster 1: unknown key 'job_cluster_kye'",
    ),
    "misspelled num_workers": (
        with_job(("num_workers:", "num_wokers:")),
        "job 'orders', job cluster 1, new_cluster: unknown key 'num_wokers'",
    ),
    "unknown task in depends_on": (
        with_job(("[{task_key: land}]", "[{task_key: lnd}]"), (", --step=count", "")),
        "job 'orders', task 'count' depends on the unknown task 'lnd'",
    ),
    "misspelled task_key": (
        with_job(("- task_key: land\n", "- task_kye: land\n")),
        "job 'orders', task 1: unknown key 'task_kye'",
    ),
    "misspelled identity": (
        with_job(("group_name: users", "groupname: users")),
        "job 'orders', permissions, entry 1: unknown key 'groupname'",
    ),
}


@pytest.mark.parametrize("case", SINGLE_CAUSES)
def test_follow_on_problems_are_not_reported(case: str, write_bundle: WriteBundle) -> None:
    files, message = SINGLE_CAUSES[case]
    with pytest.raises(ConfigurationError) as caught:
        load_all(write_bundle({**BUNDLE, **files}))
    (problem,) = caught.value.problems
    assert problem.message.startswith(message)


# ── Resolved values ───────────────────────────────────────────────────────────────────────────────────


def test_jobs_are_resolved_for_each_target(write_bundle: WriteBundle) -> None:
    root = write_bundle(BUNDLE)
    jobs = {name: target_jobs[0] for bundle in load_all(root) for name, target_jobs in bundle.jobs.items()}
    workers = {name: job.body["job_clusters"][0]["new_cluster"]["num_workers"] for name, job in jobs.items()}
    assert workers == {"dev": 1, "prod": 4}  # a reference that is the whole text keeps the type
    values = {name: find_task_calls(job)[0].parameter("value") for name, job in jobs.items()}
    assert {name: parameter.value for name, parameter in values.items() if parameter} == {
        "dev": "user=${workspace.current_user.short_name}",
        "prod": "user=everybody",
    }
    assert jobs["dev"].body["tasks"][1]["python_wheel_task"]["parameters"][3] == "dev"
    assert jobs["prod"].where("tasks", 1, "task_key") == "resources/orders.job.yml:19"
    assert (jobs["prod"].key, jobs["prod"].target) == ("orders", "prod")


def test_only_jobs_of_the_requested_environments_are_loaded(write_bundle: WriteBundle) -> None:
    root = write_bundle(BUNDLE)
    assert set(load_bundle(root, "prod").jobs) == {"prod"}
    assert load_bundle(root, "local").jobs == {}


def test_targets(write_bundle: WriteBundle) -> None:
    targets = load_bundle(write_bundle(BUNDLE)).targets
    assert targets["prod"] == Target(
        name="prod",
        mode="production",
        default=True,
        host="https://prod.example.com",
        root_path="/Workspace/Shared/shop",
        run_as={"service_principal_name": "robot"},
        permissions=({"level": "CAN_VIEW", "group_name": "users"},),
        variables={"spark": "18.x-scala2.13", "workers": 4, "user": "everybody"},
    )
    assert targets["dev"].run_as == {"user_name": "ann@example.com"}
    assert targets["dev"].is_development and not targets["dev"].default


def test_top_level_settings_apply_to_all_targets(write_bundle: WriteBundle) -> None:
    top_level = 'workspace: {profile: "shop-${bundle.target}", host: "https://a"}\n'
    top_level += "permissions: [{level: CAN_RUN, user_name: b}]\n"
    targets = load_bundle(write_bundle({**BUNDLE, "databricks.yml": DATABRICKS + top_level})).targets
    assert (targets["dev"].profile, targets["dev"].host) == ("shop-dev", "https://dev.example.com")
    assert [permission["level"] for permission in targets["prod"].permissions] == ["CAN_RUN", "CAN_VIEW"]


def test_references(write_bundle: WriteBundle) -> None:
    variables = (
        '  a: {default: "${var.b}-${bundle.target}"}\n  b: {default: true}\n  c: {default: "${var.a}"}\nartifacts:'
    )
    root = write_bundle({**BUNDLE, **with_bundle_file(("artifacts:", variables))})
    assert load_bundle(root).targets["dev"].variables["c"] == "true-dev"
    resources = read_resources(write_bundle({**BUNDLE, **with_job(("name: orders", 'name: "${var.x}"'))}))
    (job,), problems = resolve_jobs(resources, resources.targets["dev"])
    assert isinstance(job.body["name"], Unresolved) and len(problems) == 1


def test_steps_of_a_task(write_bundle: WriteBundle) -> None:
    reading = read_bundle(write_bundle(BUNDLE), ["prod"])
    drafts = {draft.name: draft for draft in reading.pipelines}
    assert [call.steps(drafts) for call in find_task_calls(reading.jobs["prod"][0])] == [("land",), ("count",)]
