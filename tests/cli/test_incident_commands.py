"""Commands for an incident work although other files of the bundle have mistakes."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from deployments import DATABRICKS, without_waiting
from headrace.cli import main

MISTAKES = {
    "a key that is not supported": {"databricks.yml": DATABRICKS.replace("bundle: {name", "bundle: {uuid: 1-2, name")},
    "a variable that is not defined": {
        "databricks.yml": DATABRICKS.replace("default: everybody", 'default: "${var.x}"')
    },
    "another environment": {"conf/prod.yml": "engin: {kind: databricks}\n"},
    "the environment": {"conf/staging.yml": "engine: {kind: databricks}\ntriger: once\n"},
    "the syntax of the environment": {"conf/staging.yml": "engine: {kind: [databricks}\n"},
    "the syntax of a resource": {"resources/live.job.yml": "resources:\n  jobs: [\n"},
    "a pipeline": {"conf/pipelines/p.yml": "steps: {land: {layer: copper}}\n"},
}


@pytest.fixture(params=MISTAKES.values(), ids=MISTAKES)
def damaged(request, tiny):
    """A deployed bundle with two releases, in whose files there is a mistake."""
    tiny.deploy()
    tiny.deploy(tiny.change())
    for name, content in request.param.items():
        (tiny.root / name).write_text(content)
    return tiny


COMMANDS = ("jobs", "history", "logs live", "start nightly", "rollback --yes", "stop live", "destroy --yes")


def test_mistake_in_another_file_blocks_no_command_for_an_incident(damaged, workspace):
    for command in COMMANDS:
        name, *arguments = command.split()
        options = ["--drain", "0.1"] if name in ("stop", "rollback", "destroy") else []
        arguments = [name, *arguments, *options, *without_waiting(name), "--env", "staging", "-C", str(damaged.root)]
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, result.output
    assert not (workspace.directory / "Workspace/Shared/tiny/staging.headrace").exists()


def test_mistake_in_what_identifies_the_target_is_an_error(tiny):
    tiny.deploy()
    text = DATABRICKS.replace("root_path: /Workspace/Shared/tiny/staging", 'root_path: "/Workspace/${var.nothing}"')
    (tiny.root / "databricks.yml").write_text(text)
    result = CliRunner().invoke(main, ["jobs", "--env", "staging", "-C", str(tiny.root)])
    assert (result.exit_code, "nothing" in result.stderr) == (1, True), result.output


def test_mistake_blocks_a_plan(damaged):
    result = CliRunner().invoke(main, ["plan", "--env", "staging", "-C", str(damaged.root)])
    assert result.exit_code == 1
