"""`headrace reset` and `headrace checkpoint`: what they print, and that they ask."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from headrace.cli import main


@pytest.fixture
def ran(flow):
    flow.source("rows")
    flow.steps("""
        land: {layer: bronze, reads: {rows: {source: rows, schema: n INT}}, writes: {table: landed}}
        copy: {layer: silver, reads: {rows: {table: landed}}, writes: {table: copied}}
        """)
    flow.feed("rows", {"n": 1}, "no json")
    flow.run()
    return flow


def invoke(flow, *arguments, code=0):
    result = CliRunner().invoke(main, [*arguments, "-C", str(flow.directory)])
    assert result.exit_code == code, result.output
    return (result.stdout or result.stderr).replace(str(flow.directory), "BUNDLE")


def test_reset_shows_what_it_changes_and_asks(ran, golden):
    golden("cli/reset", invoke(ran, "reset", "flow", "--downstream", "--yes"))
    golden("cli/reset_undone", invoke(ran, "reset", "flow", "--undo"))
    result = CliRunner().invoke(main, ["reset", "flow", "-C", str(ran.directory)])
    assert (result.exit_code, "pass --yes" in result.stderr) == (1, True)
    (land, copy) = json.loads(invoke(ran, "reset", "flow", "--yes", "-o", "json"))
    assert (land["step"], land["generation"], land["new_generation"]) == ("land", 1, 3)
    assert copy["tables"] == [{"table": "copied", "version": 1, "truncated": True}]
    assert json.loads(invoke(ran, "reset", "flow", "--undo", "-o", "json")) == {"flow/land": 1, "flow/copy": 1}
    assert "exclude" in invoke(ran, "reset", "flow", "--undo", "--downstream", code=2)


def test_checkpoints_are_listed_shown_and_verified(ran, golden):
    query = json.loads((ran.directory / "checkpoints/flow/land/1/spark/metadata").read_text())["id"]
    assert f"flow/land  1           0           {query}" in invoke(ran, "checkpoint", "list")
    assert json.loads(invoke(ran, "checkpoint", "list", "-o", "json"))[1]["step"] == "flow/copy"
    shown = json.loads(invoke(ran, "checkpoint", "show", "flow/land", "-o", "json"))
    assert shown["settings"]["spark.sql.shuffle.partitions"] == "2"
    assert shown["tables"].keys() == {"landed"}
    assert "  spark.sql.shuffle.partitions: 2" in invoke(ran, "checkpoint", "show", "flow/land")
    assert invoke(ran, "checkpoint", "verify", "flow") == "ok: 2 steps\n"
    (ran.directory / "checkpoints/flow/land/1/spark/commits/0").write_text("")
    assert "commits/0 is empty" in invoke(ran, "checkpoint", "list")
    golden("cli/checkpoint_verify", invoke(ran, "checkpoint", "verify", "flow", code=1))


def test_steps_are_compared_with_their_checkpoints(ran, golden):
    """One step is unchanged, one does not start, and one has not run yet."""
    ran.steps("""
        land: {layer: bronze, reads: {rows: {source: rows, schema: n INT}}, writes: {table: landed}}
        copy: {layer: silver, reads: {rows: {table: landed}}, writes: {table: copied, mode: replace}}
        new: {layer: silver, reads: {rows: {table: landed}}, writes: {table: new}}
        """)
    ran.bundle()  # writes the files
    golden("cli/checkpoint_diff", re.sub(r'\["\w+"\]', '["DIGEST"]', invoke(ran, "checkpoint", "diff", "flow")))
    (copy,) = json.loads(invoke(ran, "checkpoint", "diff", "flow/copy", "-o", "json"))
    assert (copy["step"], copy["result"]) == ("flow/copy", "does not start")
    assert copy["changes"][0]["verdict"] == "wrong rows"
    assert copy["accept"]
    assert "has no step 'lands'" in invoke(ran, "checkpoint", "diff", "flow/lands", code=1)


def test_adopting_asks_first(ran):
    result = CliRunner().invoke(main, ["checkpoint", "adopt", "flow/copy", "-C", str(ran.directory)])
    assert (result.exit_code, "nothing was changed" in result.stderr) == (1, True)
    assert "table copied (version 1) now belongs to flow/copy" in invoke(
        ran, "checkpoint", "adopt", "flow/copy", "--yes"
    )


def test_a_step_is_named_with_its_pipeline(ran):
    assert "is not of the form PIPELINE/STEP" in invoke(ran, "checkpoint", "show", "land", code=2)
    assert "pipeline 'flow' has no step 'lands'" in invoke(ran, "checkpoint", "show", "flow/lands", code=1)
