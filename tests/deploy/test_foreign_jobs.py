"""Jobs of others with the name, or with the pipeline and checkpoints, of a job that a deployment would create."""

from __future__ import annotations

from typing import Any

import pytest

from deployments import FILES
from headrace.deploy.plan_text import render_plan
from headrace.deploy.policy import require_allowed
from headrace.errors import DeploymentError
from workspaces import CLUSTER, create

CONF = "/Workspace/Users/bob/files/conf"


def definition(*, name="live", pipeline="p", environment="staging", conf=CONF, **settings) -> dict[str, Any]:
    """Return a job that runs a pipeline, as another tool would create it."""
    parameters = {"pipeline": pipeline, "env": environment, "conf": conf, "value": "user=everybody"}
    task = {
        "task_key": "run",
        "new_cluster": CLUSTER,
        "python_wheel_task": {"package_name": "headrace", "entry_point": "run", "named_parameters": parameters},
    }
    return {"name": name, "tasks": [task], "continuous": {"pause_status": "UNPAUSED"}, **settings}


@pytest.fixture
def conflicts(tiny, client):
    """A function that creates a job, and returns the problems of a plan for a first deployment."""

    def conflicts(body):
        create(client, body)
        release = tiny.release()
        plan = tiny.plan(release)
        try:
            require_allowed(plan, release, tiny.target(), deletable=(), any_identity=False)
        except DeploymentError as error:
            assert any(line.startswith("      ! job ") for line in render_plan(plan))
            return [problem.message for problem in error.problems]
        return []

    return conflicts


def write_environment(workspace, text):
    file = workspace.directory / CONF[1:] / "staging.yml"
    file.parent.mkdir(parents=True)
    file.write_text(text)


def test_job_of_the_same_name_is_refused(conflicts):
    deployment = {"kind": "BUNDLE", "metadata_file_path": "/Workspace/Users/bob/.bundle/tiny/state/metadata.json"}
    (problem,) = conflicts(definition(pipeline="another", deployment=deployment))
    assert problem.startswith("job 'live': job 1001 has the same name (it belongs to /Workspace/Users/bob/.bundle/")


def test_job_with_the_same_pipeline_and_checkpoints_is_refused(conflicts, workspace):
    write_environment(workspace, FILES["conf/staging.yml"])
    (problem,) = conflicts(definition(name="other"))
    assert problem == "job 'live': job 1001 runs pipeline 'p' with the same checkpoints; both would run"


def test_job_with_other_checkpoints_is_none_of_our_business(conflicts, workspace):
    write_environment(workspace, FILES["conf/staging.yml"].replace("/checkpoints", "/other"))
    assert conflicts(definition(name="other")) == []


@pytest.mark.parametrize(("environment", "count"), [("staging", 1), ("prod", 0)])
def test_environment_decides_if_the_configuration_cannot_be_read(conflicts, environment, count):
    assert len(conflicts(definition(name="other", environment=environment))) == count


def test_job_of_another_pipeline_and_name_is_ignored(conflicts):
    assert conflicts(definition(name="other", pipeline="another")) == []
    assert conflicts({**definition(name="notebook"), "tasks": [{"task_key": "n", "notebook_task": {}}]}) == []


def test_jobs_of_another_environment_in_the_same_workspace_are_ignored(tiny):
    tiny.deploy(environment="prod")
    plan = tiny.plan()
    assert [job.conflicts for job in plan.jobs] == [(), ()]


def test_job_is_taken_over(tiny, client):
    foreign = create(client, definition())
    release = tiny.release()
    state = tiny.deploy(release, adopt=["live"])
    assert state.jobs["live"].id == foreign
    active = tiny.target().remote.list_runs(foreign, active=True)
    assert [run.uses(release.id) for run in active] == [True]
    assert len(list(client.jobs.list())) == 2
    assert tiny.plan(release).is_empty


def test_plan_shows_which_job_is_taken_over(tiny, client):
    foreign = create(client, definition())
    plan = tiny.plan(adopt=["live"])
    assert plan.jobs[0].conflicts == ()
    assert f"  ~ job live: update, takes over job {foreign}" in render_plan(plan)


def test_nothing_or_several_jobs_to_take_over_is_an_error(tiny, client):
    with pytest.raises(DeploymentError, match="there is no job to take over for 'live'"):
        tiny.plan(adopt=["live"])
    create(client, definition())
    create(client, definition())
    with pytest.raises(DeploymentError, match="several jobs could be taken over for 'live'"):
        tiny.plan(adopt=["live"])
