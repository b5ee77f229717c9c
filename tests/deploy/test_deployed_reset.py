"""`headrace reset` in an environment with deployed jobs: the run that it starts, and what is refused.

tests/deploy/test_three_workspaces.py and test_spark_cluster.py execute such runs; here, the workspace executes no task.
"""

from __future__ import annotations

from click.testing import CliRunner

from deployments import LIVE
from headrace.cli import main
from headrace.deploy.databricks_workspace import Workspace


def reset(tiny, *arguments, code=0):
    result = CliRunner().invoke(main, ["reset", *arguments, "--drain", "0", "-C", str(tiny.root)])
    assert result.exit_code == code, result.output
    return result.output


def submitted_runs(client):
    return [run for run in client.jobs.list_runs(expand_tasks=True) if run.run_name == "reset p"]


def test_jobs_are_stopped_and_a_run_of_their_release_resets_the_steps(tiny, client):
    tiny.deploy(environment="prod")
    output = reset(tiny, "p", "--env", "prod", "--step", "land", "--downstream", "--from", "2026-01-01", "--yes")
    assert "job live: stopped" in output
    assert "Start it with: headrace start live --env prod" in output
    assert tiny.state("prod").stopped == ("live",)
    (run,) = submitted_runs(client)
    (task,) = run.tasks
    deployed = tiny.state("prod").jobs["live"].body["tasks"][0]
    assert [library.as_dict() for library in task.libraries] == deployed["libraries"]
    assert task.new_cluster.node_type_id == "i3.xlarge"
    call = task.python_wheel_task
    assert (call.package_name, call.entry_point) == ("headrace", "reset")
    named = deployed["python_wheel_task"]["named_parameters"]
    assert call.named_parameters == {**named, "steps": "land", "downstream": "true", "from": "2026-01-01"}


def test_parameters_that_are_a_list_stay_a_list(tiny, client):
    parameters = '["--pipeline", p, "--env=${bundle.target}", "--value=user=${var.user}"]'
    job = LIVE[: LIVE.index("            named_parameters")] + f"            parameters: {parameters}\n"
    tiny.change(**{"resources/live.job.yml": job})
    tiny.deploy(environment="prod")
    reset(tiny, "p", "--env", "prod", "--undo")
    (run,) = submitted_runs(client)
    assert run.tasks[0].python_wheel_task.parameters == [
        "--pipeline",
        "p",
        "--env=prod",
        "--value=user=everybody",
        "--undo=true",
    ]


def test_without_an_answer_the_reset_is_only_planned(tiny, client):
    tiny.deploy(environment="prod")
    assert "cannot ask for confirmation" in reset(tiny, "p", "--env", "prod", code=1)
    (run,) = submitted_runs(client)
    assert run.tasks[0].python_wheel_task.named_parameters["dry-run"] == "true"
    assert tiny.state("prod").stopped == ()


def test_run_that_does_not_end_is_an_error(tiny, client, monkeypatch):
    tiny.deploy(environment="prod")
    active = client.jobs.list_runs(active_only=True)
    running = next(iter(active)).run_id
    monkeypatch.setattr(Workspace, "submit_run", lambda self, body, token: running)
    output = reset(tiny, "p", "--env", "prod", "--within", "0", code=1)
    assert f"run {running} has not ended within 0 seconds" in output


def test_pipeline_without_a_deployed_job(tiny):
    output = reset(tiny, "p", "--env", "prod", "--yes", code=1)
    assert "no deployed job of environment 'prod' runs pipeline 'p'" in output
    assert "headrace deploy --env prod" in output
    tiny.deploy(environment="prod")
    assert "-o json is not supported" in reset(tiny, "p", "--env", "prod", "-o", "json", code=2)
