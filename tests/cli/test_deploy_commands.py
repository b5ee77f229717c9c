"""Test `headrace plan`, `deploy`, `promote`, `rollback`, `destroy`, `jobs`, `history`: output, questions, errors."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from click.testing import CliRunner

from deployments import DATABRICKS, commit, without_waiting
from headrace.checkpoints.heartbeat import Heartbeat
from headrace.cli import main
from headrace.deploy.databricks_workspace import Workspace
from headrace.release import releases


@pytest.fixture
def headrace(tiny):
    def run(*arguments, code=0):
        result = CliRunner().invoke(main, [*arguments, *without_waiting(arguments[0]), "-C", str(tiny.root)])
        assert result.exit_code == code, result.output
        return result

    return run


def without_variable_parts(text, tiny, workspace):
    """Replace what differs between two runs of the tests."""
    by_age = sorted(releases.list_releases(tiny.root), key=lambda release: release.directory.stat().st_ctime)
    for number, release in enumerate(by_age):
        text = text.replace(release.id, f"RELEASE{number}")
    text = text.replace(workspace.url, "WORKSPACE").replace(str(tiny.root), "BUNDLE")
    text = re.sub(r"job \w+: waiting for .*\n", "", text)  # depends on the speed of the simulated run
    text = re.sub(r"g[0-9a-f]{8} sha256:[0-9a-f]{12}", "gCONTENT sha256:HASH", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", "TIME", text)
    return re.sub(r"\b([0-9a-f]{12}|[0-9a-f]{7}(?= all files))\b", "COMMIT", text)


def test_output_of_a_sequence_of_deployments(headrace, tiny, workspace, golden):
    outputs = [headrace("plan", "--env", "staging", "--exit-code", code=3).output]
    outputs.append(headrace("deploy", "--env", "staging", "--yes").output)
    outputs.append(headrace("plan", "--env", "staging", "--exit-code").output)
    tiny.change()
    outputs.append(headrace("deploy", "--env", "staging", "--yes", "--drain", "0.1").output)
    outputs.append(
        headrace("promote", "--from", "staging", "--to", "prod", "--yes", "--gate", "started", code=1).output
    )
    headrace("start", "nightly", "--env", "staging")
    outputs.append(headrace("promote", "--from", "staging", "--to", "prod", "--yes").output)
    outputs.append(headrace("rollback", "--env", "staging", "--yes", "--drain", "0.1").output)
    outputs.append(headrace("stop", "live", "--env", "staging", "--drain", "0.1").output)
    outputs.append(headrace("jobs", "--env", "staging").output)
    outputs.append(headrace("history", "--env", "staging").output)
    outputs.append(headrace("history", "--env", "prod").output)
    outputs.append(headrace("destroy", "--env", "staging", "--yes", "--drain", "0.1").output)
    outputs.append(headrace("jobs", "--env", "staging").output)
    golden("cli/deploying", without_variable_parts("\n".join(outputs), tiny, workspace))
    assert not (workspace.directory / "Workspace/Shared/tiny/staging.headrace").exists()


def test_first_deployment_makes_few_calls(headrace, workspace):
    workspace.faults.reset()
    headrace("deploy", "--env", "staging", "--yes")
    polling = ("/jobs/runs/list", "/heartbeat.json")
    calls = [call for call in workspace.faults.calls if not call.path.endswith(polling)]
    assert len(calls) <= 60


def test_jobs_shows_an_unfinished_deployment_and_the_failure_of_a_step(headrace, tiny, workspace, monkeypatch):
    tiny.deploy()
    changed = tiny.change()
    with monkeypatch.context() as patched:
        patched.setattr("headrace.deploy.apply._write_history", lambda deployment, failure: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            tiny.deploy(changed)
    (file,) = workspace.directory.rglob("p/land/heartbeat.json")
    beat = Heartbeat.from_json(file.read_text())
    file.write_text(replace(beat, failure="step 'land' failed: no space left").to_json())
    output = headrace("jobs", "--env", "staging").output
    assert f"unfinished: deploy of {changed.id} by alice@example.com at" in output
    assert "live: step 'land' failed: no space left" in output


def test_jobs_with_a_job_lists_its_runs_with_their_messages(headrace, tiny):
    tiny.deploy()
    first = tiny.state().release
    tiny.deploy(tiny.change())
    titles, active, cancelled = headrace("jobs", "live", "--env", "staging").output.splitlines()
    assert titles.split() == ["run", "began", "ended", "release", "result", "message"]
    assert (tiny.state().release in active, "running" in active) == (True, True)
    assert (first in cancelled, cancelled.endswith("canceled  Run cancelled.")) == (True, True)
    assert len(json.loads(headrace("jobs", "live", "--env", "staging", "-o", "json").output)) == 2
    assert "has no job 'liv'" in headrace("jobs", "liv", "--env", "staging", code=1).stderr


def test_logs_show_the_last_run_that_has_an_output(headrace, tiny, monkeypatch):
    tiny.deploy()
    tiny.deploy(tiny.change())
    active, ended = tiny.target().remote.list_runs(tiny.state().jobs["live"].id)
    outputs = {active.id: "", ended.id: "text\n"}
    monkeypatch.setattr(Workspace, "read_output", lambda self, run: outputs[run.id])
    shown = headrace("logs", "live", "--env", "staging")
    assert (shown.stdout, f"run {ended.id}: canceled" in shown.stderr) == ("text\n", True)
    assert headrace("logs", "live", "--env", "staging", "--run", str(active.id)).stdout == ""
    outputs[ended.id] = ""
    assert f"run {active.id}: running" in headrace("logs", "live", "--env", "staging").stderr


def test_status_of_a_deployed_pipeline_is_what_its_runs_report(headrace, tiny):
    tiny.deploy()
    lines = headrace("status", "p", "--env", "staging").output.splitlines()
    assert lines[0] == "pipeline p, environment staging: job live"
    assert lines[1].startswith("  land: batch 0, 7 rows, last batch at ")
    assert lines[1].endswith(f"release {tiny.state().release}")
    (beat,) = json.loads(headrace("status", "p", "--env", "staging", "-o", "json").output)
    assert (beat["job"], beat["step"], beat["batch"]) == ("live", "land", 0)
    assert "no run of a deployed job has reported anything" in headrace("status", "p", "--env", "prod").output


def test_saved_plan_is_applied_unless_it_is_stale(headrace, tiny, tmp_path):
    saved = tmp_path / "plan.json"
    printed = json.loads(headrace("plan", "--env", "staging", "--save", str(saved), "-o", "json").stdout)
    assert printed == json.loads(saved.read_text())
    headrace("deploy", "--plan", str(saved), "--yes")
    assert tiny.state().release == printed["release"]
    failed = headrace("deploy", "--plan", str(saved), "--yes", code=1)
    assert "is stale: state lineage, state serial, deployed release, jobs changed since" in failed.output


def test_saved_plan_of_a_changed_release_is_an_error(headrace, tiny, tmp_path):
    saved = tmp_path / "plan.json"
    headrace("plan", "--env", "staging", "--save", str(saved))
    (tiny.release().directory / "databricks.yml").write_text("bundle: {name: other}\n")
    assert "databricks.yml was changed" in headrace("deploy", "--plan", str(saved), "--yes", code=1).output
    assert tiny.state().serial == 0


def test_production_problems_are_reported_together(headrace, tiny, workspace, golden):
    (tiny.root / "databricks.yml").write_text(DATABRICKS.replace("    run_as: {service_principal_name", "    # {name"))
    failed = headrace("deploy", "--env", "prod", "--yes", code=1)
    golden("cli/deploying_production", without_variable_parts(failed.stderr, tiny, workspace))
    assert tiny.state("prod").serial == 0
    commit(tiny.root)
    headrace("deploy", "--env", "prod", "--yes", "--any-identity")


def test_job_is_deleted_only_with_delete(headrace, tiny, workspace):
    headrace("deploy", "--env", "staging", "--yes")
    tiny.change(**{"resources/nightly.job.yml": None})
    failed = headrace("deploy", "--env", "staging", "--yes", code=1)
    assert "--delete nightly" in failed.stderr
    headrace("deploy", "--env", "staging", "--yes", "--drain", "0.1", "--delete", "nightly")
    assert set(tiny.state().jobs) == {"live"}


@pytest.mark.parametrize(("typed", "code", "remaining"), [("n\n", 1, {"live", "nightly"}), ("y\n", 0, {"live"})])
def test_each_deletion_is_confirmed_in_a_terminal(tiny, monkeypatch, typed, code, remaining):
    tiny.deploy()
    tiny.change(**{"resources/nightly.job.yml": None})
    monkeypatch.setattr("headrace.cli.confirmation._is_interactive", lambda: True)
    command = ["deploy", "--env", "staging", "--yes", "--drain", "0.1", "--watch", "0", "-C", str(tiny.root)]
    result = CliRunner().invoke(main, command, input=typed)
    assert (result.exit_code, "Delete job nightly?" in result.output) == (code, True), result.output
    assert set(tiny.state().jobs) == remaining


@pytest.mark.parametrize("text", ["plan for staging: …", "{}", '{"jobs": 1}', "[]"])
def test_file_that_is_not_a_plan_is_an_error(headrace, tmp_path, text):
    (tmp_path / "plan.txt").write_text(text)
    failed = headrace("deploy", "--plan", str(tmp_path / "plan.txt"), code=1)
    assert "the file is not a saved plan" in failed.stderr
    assert "headrace plan --save" in failed.stderr


def test_nothing_is_changed_without_confirmation(headrace, tiny):
    failed = headrace("deploy", "--env", "staging", code=1)
    assert "cannot ask for confirmation, as stdin is not a terminal: nothing was changed" in failed.stderr
    assert tiny.state().serial == 0


@pytest.mark.parametrize("command", [("plan",), ("deploy", "--yes")])
def test_yes_does_not_allow_credentials(headrace, tiny, command):
    (tiny.root / "conf" / "tls.key").write_text("k")
    failed = headrace(*command, "--env", "staging", code=1)
    assert "conf/tls.key looks like a credential" in failed.stderr
    assert "--allow-file conf/tls.key" in failed.stderr
    assert tiny.state().serial == 0
    headrace(*command, "--env", "staging", "--allow-file", "conf/tls.key")


@pytest.mark.parametrize(
    ("environment", "typed", "is_deployed"),
    [("staging", "y\n", True), ("staging", "\n", False), ("prod", "y\n", False), ("prod", "prod\n", True)],
)
def test_production_asks_for_its_name_and_other_environments_for_yes(
    tiny, monkeypatch, environment, typed, is_deployed
):
    monkeypatch.setattr("headrace.cli.confirmation._is_interactive", lambda: True)
    result = CliRunner().invoke(
        main, ["deploy", "--env", environment, "--watch", "0", "-C", str(tiny.root)], input=typed
    )
    assert result.exit_code == (0 if is_deployed else 1), result.output
    assert ("nothing was changed" in result.stderr) is not is_deployed
    assert (tiny.state(environment).release != "") is is_deployed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan",), "environment 'local' cannot be deployed to: it has no target in databricks.yml"),
        (("plan", "--env", "stagin"), "there is no environment 'stagin'"),
        (("plan", "--env", "staging", "--release", "ffff"), "there is no release 'ffff'"),
        (("promote", "--from", "staging", "--to", "prod"), "nothing is deployed to environment 'staging'"),
        (("rollback", "--env", "staging"), "has no release before the current one"),
        (("start", "liv", "--env", "staging"), "environment 'staging' has no job 'liv'"),
        (("logs", "live", "--env", "staging"), "environment 'staging' has no job 'live'"),
    ],
)
def test_unknown_names_are_errors(headrace, arguments, message):
    assert message in headrace(*arguments, code=1).stderr


@pytest.mark.parametrize(
    "command", ["plan", "deploy", "rollback", "destroy", "jobs", "history", "start live", "logs live"]
)
def test_environments_that_can_be_deployed_to_are_named(headrace, tiny, command):
    failed = headrace(*command.split(), code=1)
    assert "fix: pass --env with an environment that has one: dev, staging, prod" in failed.stderr


@pytest.mark.parametrize(("option", "other"), [("--from", "--to"), ("--to", "--from")])
def test_promote_names_the_option_of_an_environment_without_a_target(headrace, option, other):
    failed = headrace("promote", option, "local", other, "staging", code=1)
    assert f"fix: pass {option} with an environment that has one: dev, staging, prod" in failed.stderr


@pytest.mark.parametrize("command", ["stop", "destroy"])
def test_commands_that_start_no_run_do_not_take_within(headrace, command):
    assert "No such option" in headrace(command, "--within", "1", code=2).stderr


def test_other_workspace_than_that_of_the_target_is_an_error(headrace, tiny, monkeypatch):
    text = DATABRICKS.replace(
        "workspace: {root_path: /Workspace/Shared/tiny/staging}", "workspace: {host: https://one.example.com}"
    )
    (tiny.root / "databricks.yml").write_text(text)
    monkeypatch.setenv("DATABRICKS_HOST", "https://two.example.com")
    failed = headrace("plan", "--env", "staging", code=1)
    assert (
        "the host of target 'staging' is https://one.example.com, but DATABRICKS_HOST is https://two.example.com"
        in failed.stderr
    )


def test_workspace_that_does_not_respond_is_an_error(headrace, workspace, monkeypatch):
    monkeypatch.setattr("headrace.deploy.sdk_calls.RETRY_TIMEOUT_S", 1)
    workspace.stop()
    failed = headrace("plan", "--env", "staging", code=1)
    assert "does not answer GET" in failed.stderr
    assert "run the same command again" in failed.stderr
    workspace.start()


def test_missing_login_is_an_error(headrace, monkeypatch):
    monkeypatch.delenv("DATABRICKS_TOKEN")
    monkeypatch.setenv("HOME", "/nonexistent")
    assert "there is no login for the workspace" in headrace("plan", "--env", "staging", code=1).stderr
