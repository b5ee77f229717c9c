"""`headrace plan`, `deploy`, `promote`, `rollback`, `destroy`, `jobs`, `history`: what they print, ask and refuse."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from deployments import DATABRICKS, commit
from headrace.cli import main
from headrace.release import releases


@pytest.fixture
def headrace(tiny):
    def run(*arguments, code=0):
        done = CliRunner().invoke(main, [*arguments, "-C", str(tiny.root)])
        assert done.exit_code == code, done.output
        return done

    return run


def steady(text, tiny, workspace):
    """The text without what is another each time."""
    for number, one in enumerate(sorted(releases.releases(tiny.root), key=lambda one: one.directory.stat().st_ctime)):
        text = text.replace(one.id, f"RELEASE{number}")
    text = text.replace(workspace.url, "WORKSPACE").replace(str(tiny.root), "BUNDLE")
    text = re.sub(r"g[0-9a-f]{8} sha256:[0-9a-f]{12}", "gCONTENT sha256:HASH", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", "TIME", text)
    return re.sub(r"\b[0-9a-f]{12}\b", "COMMIT", text)


def test_a_life_of_deployments_as_it_is_printed(headrace, tiny, workspace, golden):
    told = [headrace("plan", "--env", "staging", "--exit-code", code=3).output]
    told.append(headrace("deploy", "--env", "staging", "--yes").output)
    told.append(headrace("plan", "--env", "staging", "--exit-code").output)
    tiny.change()
    told.append(headrace("deploy", "--env", "staging", "--yes", "--drain", "0.1").output)
    told.append(headrace("promote", "--from", "staging", "--to", "prod", "--yes", "--gate", "started", code=1).output)
    headrace("start", "nightly", "--env", "staging")
    told.append(headrace("promote", "--from", "staging", "--to", "prod", "--yes").output)
    told.append(headrace("rollback", "--env", "staging", "--yes", "--drain", "0.1").output)
    told.append(headrace("stop", "live", "--env", "staging", "--drain", "0.1").output)
    told.append(headrace("jobs", "--env", "staging").output)
    told.append(headrace("history", "--env", "staging").output)
    told.append(headrace("history", "--env", "prod").output)
    told.append(headrace("destroy", "--env", "staging", "--yes", "--drain", "0.1").output)
    told.append(headrace("jobs", "--env", "staging").output)
    golden("cli/deploying", steady("\n".join(told), tiny, workspace))
    assert not (workspace.directory / "Workspace/Shared/tiny/staging").exists()


def test_a_saved_plan_is_carried_out_as_it_is_or_not_at_all(headrace, tiny, tmp_path):
    saved = tmp_path / "plan.json"
    told = json.loads(headrace("plan", "--env", "staging", "--save", str(saved), "-o", "json").stdout)
    assert told == json.loads(saved.read_text())
    headrace("deploy", "--plan", str(saved), "--yes")
    assert tiny.state().release == told["release"]
    refused = headrace("deploy", "--plan", str(saved), "--yes", code=1)
    assert "is stale: state lineage, state serial, deployed release, jobs changed since" in refused.output


def test_a_saved_plan_whose_release_was_changed_is_refused(headrace, tiny, tmp_path):
    saved = tmp_path / "plan.json"
    headrace("plan", "--env", "staging", "--save", str(saved))
    (tiny.release().directory / "databricks.yml").write_text("bundle: {name: other}\n")
    assert "databricks.yml was changed" in headrace("deploy", "--plan", str(saved), "--yes", code=1).output
    assert tiny.state().serial == 0


def test_production_refuses_what_would_be_regretted_all_at_once(headrace, tiny, workspace, golden):
    (tiny.root / "databricks.yml").write_text(DATABRICKS.replace("    run_as: {service_principal_name", "    # {name"))
    refused = headrace("deploy", "--env", "prod", "--yes", code=1)
    golden("cli/deploying_production", steady(refused.stderr, tiny, workspace))
    assert tiny.state("prod").serial == 0
    commit(tiny.root)
    headrace("deploy", "--env", "prod", "--yes", "--any-identity")


def test_a_job_is_deleted_only_when_it_is_named(headrace, tiny, workspace):
    headrace("deploy", "--env", "staging", "--yes")
    tiny.change(**{"resources/nightly.job.yml": None})
    refused = headrace("deploy", "--env", "staging", "--yes", code=1)
    assert "--delete nightly" in refused.stderr
    headrace("deploy", "--env", "staging", "--yes", "--drain", "0.1", "--delete", "nightly")
    assert set(tiny.state().jobs) == {"live"}


@pytest.mark.parametrize(("typed", "code", "left"), [("n\n", 1, {"live", "nightly"}), ("y\n", 0, {"live"})])
def test_a_terminal_is_asked_for_each_deletion(tiny, monkeypatch, typed, code, left):
    tiny.deploy()
    tiny.change(**{"resources/nightly.job.yml": None})
    monkeypatch.setattr("headrace.cli.confirmation._is_somebody_there", lambda: True)
    command = ["deploy", "--env", "staging", "--yes", "--drain", "0.1", "-C", str(tiny.root)]
    told = CliRunner().invoke(main, command, input=typed)
    assert (told.exit_code, "Delete job nightly?" in told.output) == (code, True), told.output
    assert set(tiny.state().jobs) == left


@pytest.mark.parametrize("text", ["plan for staging: …", "{}", '{"jobs": 1}', "[]"])
def test_a_file_that_is_no_plan_is_told(headrace, tmp_path, text):
    (tmp_path / "plan.txt").write_text(text)
    refused = headrace("deploy", "--plan", str(tmp_path / "plan.txt"), code=1)
    assert "the file is not a saved plan" in refused.stderr
    assert "headrace plan --save" in refused.stderr


def test_nothing_is_changed_without_an_answer(headrace, tiny):
    refused = headrace("deploy", "--env", "staging", code=1)
    assert "nobody is there to answer: nothing was changed" in refused.stderr
    assert tiny.state().serial == 0


@pytest.mark.parametrize("command", [("plan",), ("deploy", "--yes")])
def test_yes_does_not_allow_credentials(headrace, tiny, command):
    (tiny.root / "conf" / "tls.key").write_text("k")
    refused = headrace(*command, "--env", "staging", code=1)
    assert "conf/tls.key looks like a credential" in refused.stderr
    assert "--allow-file conf/tls.key" in refused.stderr
    assert tiny.state().serial == 0
    headrace(*command, "--env", "staging", "--allow-file", "conf/tls.key")


@pytest.mark.parametrize(
    ("environment", "typed", "done"),
    [("staging", "y\n", True), ("staging", "\n", False), ("prod", "y\n", False), ("prod", "prod\n", True)],
)
def test_production_asks_for_its_name_and_others_for_a_yes(tiny, monkeypatch, environment, typed, done):
    monkeypatch.setattr("headrace.cli.confirmation._is_somebody_there", lambda: True)
    told = CliRunner().invoke(main, ["deploy", "--env", environment, "-C", str(tiny.root)], input=typed)
    assert told.exit_code == (0 if done else 1), told.output
    assert ("nothing was changed" in told.stderr) is not done
    assert (tiny.state(environment).release != "") is done


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plan", "--env", "local"), "nothing is deployed to environment 'local'"),
        (("plan", "--env", "stagin"), "there is no environment 'stagin'"),
        (("plan", "--env", "staging", "--release", "ffff"), "there is no release 'ffff'"),
        (("promote", "--from", "staging", "--to", "prod"), "nothing is deployed to environment 'staging'"),
        (("rollback", "--env", "staging"), "has no release before the current one"),
        (("start", "liv", "--env", "staging"), "environment 'staging' has no job 'liv'"),
        (("logs", "live", "--env", "staging"), "environment 'staging' has no job 'live'"),
    ],
)
def test_what_is_not_there_is_told(headrace, arguments, words):
    assert words in headrace(*arguments, code=1).stderr


def test_another_workspace_than_the_targets_is_refused(headrace, tiny, monkeypatch):
    text = DATABRICKS.replace(
        "workspace: {root_path: /Workspace/Shared/tiny/staging}", "workspace: {host: https://one.example.com}"
    )
    (tiny.root / "databricks.yml").write_text(text)
    monkeypatch.setenv("DATABRICKS_HOST", "https://two.example.com")
    refused = headrace("plan", "--env", "staging", code=1)
    assert (
        "the host of target 'staging' is https://one.example.com, but DATABRICKS_HOST is https://two.example.com"
        in refused.stderr
    )


def test_a_workspace_that_does_not_answer_is_told_within_seconds(headrace, workspace, monkeypatch):
    monkeypatch.setattr("headrace.deploy.sdk_calls.RETRY_TIMEOUT_S", 1)
    workspace.stop()
    refused = headrace("plan", "--env", "staging", code=1)
    assert "does not answer GET" in refused.stderr
    assert "run the same command again" in refused.stderr
    workspace.start()


def test_a_refused_login_is_told(headrace, monkeypatch):
    monkeypatch.delenv("DATABRICKS_TOKEN")
    monkeypatch.setenv("HOME", "/nonexistent")
    assert "there is no login for the workspace" in headrace("plan", "--env", "staging", code=1).stderr
