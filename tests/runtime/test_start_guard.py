"""Starts on checkpoints and tables that do not belong together: refused before anything is written."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from click.testing import CliRunner

from flows import Flow
from headrace.cli import main
from headrace.errors import HeadraceError
from headrace.testing import run_pipeline
from selection import mostly_full

STEPS = """
    land: {layer: bronze, reads: {rows: {source: rows, schema: n INT}}, writes: {table: landed}}
    copy: {layer: silver, reads: {rows: {table: landed}}, writes: {table: copied}}
    """


@pytest.fixture(scope="module")
def two_runs(spark, tmp_path_factory):
    """A pipeline after its first and after its second run: two directories."""
    flow = Flow(spark, tmp_path_factory.mktemp("original") / "bundle")
    flow.source("rows", maxFilesPerTrigger=1)
    flow.steps(STEPS)
    flow.feed("rows", {"n": 1}, {"n": 2})
    flow.run()
    first = shutil.copytree(flow.directory, tmp_path_factory.mktemp("copies") / "first")
    flow.feed("rows", {"n": 3})
    flow.run()
    flow.feed("rows", {"n": 4})
    return flow, first


@pytest.fixture
def ran(two_runs, tmp_path):
    """A copy of the pipeline after its second run, with a third file to read."""
    return copy_of(two_runs[0], tmp_path / "bundle")


def copy_of(original, directory):
    """Return a copy of a flow that reads the same files: their paths are in the checkpoint."""
    copy = Flow(original.spark, directory)
    for name in ("tables", "checkpoints"):
        shutil.copytree(original.directory / name, directory / name)
    copy._sources = original._sources
    copy.steps(STEPS)
    return copy


def refusal(flow):
    """Return the problems with which a run is refused, and check that it has written nothing."""
    before = snapshot(flow)
    with pytest.raises(HeadraceError) as error:
        flow.run()
    assert snapshot(flow) == before
    return str(error.value).replace(str(flow.directory), "BUNDLE")


def snapshot(flow):
    roots = [flow.directory / "tables", flow.directory / "checkpoints"]
    files = [file for root in roots for file in root.rglob("*") if file.is_file() and file.name != "lock"]
    return {str(file): file.read_bytes() for file in files}


def checkpoint(flow, step="land"):
    return flow.directory / "checkpoints" / "flow" / step / "1" / "spark"


def test_tables_and_checkpoints_know_each_other(ran):
    record = json.loads((checkpoint(ran).parent / "signature.json").read_text())
    detail = ran.spark.sql(f"DESCRIBE DETAIL delta.`{ran.directory}/tables/landed`").collect()[0]
    assert record["tables"] == {"landed": detail["id"]}
    writers = json.loads(detail["properties"]["headrace.writers"])
    name = {"bundle": record["bundle"], "pipeline": "flow", "step": "land"}
    assert writers == [{**name, "generation": 1, "table": detail["id"]}]
    assert len(ran.run().rows("copied")) == 4


# ── Checkpoint or table removed, renamed, replaced ────────────────────────────────────────────────────


def remove_checkpoint(flow, first):
    shutil.rmtree(flow.directory / "checkpoints" / "flow" / "land")


def remove_table(flow, first):
    shutil.rmtree(flow.directory / "tables" / "landed")


def rename_step(flow, first):
    flow.steps(STEPS.replace("land:", "arrive:"))


def rename_table(flow, first):
    flow.steps(STEPS.replace("copied", "copies"))


def restore_older_checkpoint(flow, first):
    shutil.rmtree(flow.directory / "checkpoints")
    shutil.copytree(first / "checkpoints", flow.directory / "checkpoints")


def remove_offsets_and_commits(flow, first):
    shutil.rmtree(checkpoint(flow) / "offsets")
    shutil.rmtree(checkpoint(flow) / "commits")


def restore_table(flow, first):
    path = f"{flow.directory}/tables/copied"
    flow.spark.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF 0")


def replace_table_by_clone(flow, first):
    path = flow.directory / "tables" / "copied"
    path.rename(f"{path}-original")
    flow.spark.sql(f"CREATE TABLE delta.`{path}` SHALLOW CLONE delta.`{path}-original`")


def use_table_of_another_bundle(flow, first):
    shutil.rmtree(flow.directory / "checkpoints" / "flow" / "copy")
    set_writer(flow, "copied", bundle="other")


def replace_table_by_unknown_one(flow, first):
    path = flow.directory / "tables" / "landed"
    shutil.rmtree(path)
    flow.spark.sql(f"CREATE TABLE delta.`{path}` USING delta AS SELECT 7 AS n")


def truncate_files(flow, first):
    (checkpoint(flow) / "metadata").write_text("")
    (checkpoint(flow) / "offsets" / "1").write_text("v1\n{")
    (checkpoint(flow) / "commits" / "1").write_text("")


def set_writer(flow, table, **changes):
    path = f"{flow.directory}/tables/{table}"
    properties = flow.spark.sql(f"DESCRIBE DETAIL delta.`{path}`").collect()[0]["properties"]
    writers = [{**writer, **changes} for writer in json.loads(properties["headrace.writers"])]
    flow.spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('headrace.writers' = '{json.dumps(writers)}')")


# With the number of the command to apply, and the rows afterwards. A step that adopts a table reads everything again.
CHANGES = {
    "remove_checkpoint": (remove_checkpoint, 0, [1, 2, 3, 4]),
    "remove_table": (remove_table, 0, [1, 2, 3, 4]),
    "rename_step": (rename_step, 0, [1, 2, 3, 4]),
    "rename_table": (rename_table, 0, [1, 2, 3, 4]),
    "restore_older_checkpoint": (restore_older_checkpoint, 0, [1, 2, 3, 4]),
    "remove_offsets_and_commits": (remove_offsets_and_commits, 0, [1, 2, 3, 4]),
    "restore_table": (restore_table, 0, [1, 2, 3, 4]),
    "replace_table_by_clone": (replace_table_by_clone, 0, [1, 2, 3, 4]),
    "use_table_of_another_bundle": (use_table_of_another_bundle, 0, [1, 1, 2, 2, 3, 3, 4]),
    "replace_table_by_unknown_one": (replace_table_by_unknown_one, 1, [1, 2, 3, 4]),
    "truncate_files": (truncate_files, 0, [1, 2, 3, 4]),
}


@pytest.mark.parametrize("name", mostly_full(list(CHANGES), "remove_checkpoint", "rename_step"))
def test_pair_that_does_not_belong_together_is_refused_until_the_fix_is_applied(ran, two_runs, golden, name):
    change, index, rows = CHANGES[name]
    change(ran, two_runs[1])
    ran.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    message = refusal(ran)
    golden(f"start_guard/{name}", message)
    for command in commands(message, index):
        apply_fix(ran, command)
    ran.run()
    table = "copies" if change is rename_table else "copied"
    assert sorted(row["n"] for row in ran.run().rows(table)) == rows


def commands(message, index=0):
    """Return a command of each fix."""
    fixes = [line for line in message.splitlines() if line.startswith("  fix: ")]
    return [re.findall(r"headrace [^,]+", fix)[index].split() for fix in fixes]


def apply_fix(flow, command):
    """Run a command; if it is refused, run the one that its own fix names instead."""
    confirmed = ["--yes"] if command[1] == "reset" or command[2] == "adopt" else []
    result = CliRunner().invoke(main, [*command[1:], *confirmed, "-C", str(flow.directory)])
    if result.exit_code:
        (fix,) = commands(result.stderr)
        assert fix != command
        apply_fix(flow, fix)


def test_renamed_pipeline_file_is_refused_until_its_checkpoints_are_renamed(ran):
    ran.bundle()
    pipelines = ran.directory / "conf" / "pipelines"
    (pipelines / "flow.yml").rename(pipelines / "orders.yml")
    before = snapshot(ran)
    with pytest.raises(HeadraceError, match="which is no longer in the bundle") as error:
        run_pipeline(ran.spark, ran.directory, "orders", ran.directory)
    assert snapshot(ran) == before
    (command,) = set(map(tuple, commands(str(error.value))))
    assert command == ("headrace", "checkpoint", "rename", "flow", "orders")
    apply_fix(ran, command)
    renamed = run_pipeline(ran.spark, ran.directory, "orders", ran.directory)
    assert sorted(row["n"] for row in renamed.rows("copied")) == [1, 2, 3, 4]


def test_pair_that_an_older_version_wrote_is_accepted(ran):
    """Neither the table nor the checkpoint has a record, but the table has a transaction of the checkpoint's query."""
    for step, table in (("land", "landed"), ("copy", "copied")):
        (checkpoint(ran, step).parent / "signature.json").unlink()
        ran.spark.sql(f"ALTER TABLE delta.`{ran.directory}/tables/{table}` UNSET TBLPROPERTIES ('headrace.writers')")
    assert len(ran.run().rows("copied")) == 4


def test_empty_table_that_was_created_manually_can_be_written(flow):
    path = flow.directory / "tables" / "landed"
    flow.spark.sql(f"CREATE TABLE delta.`{path}` (n INT COMMENT 'number') USING delta")
    flow.source("rows")
    flow.steps(STEPS)
    flow.feed("rows", {"n": 1})
    assert len(flow.run().rows("copied")) == 1


@pytest.mark.full
def test_restore_of_the_newest_rows_is_accepted(ran):
    restore_table(ran, None)
    assert "was restored to an older version (commit 3)" in refusal(ran)
    ran.spark.sql(f"RESTORE TABLE delta.`{ran.directory}/tables/copied` TO VERSION AS OF 2")
    assert len(ran.run().rows("copied")) == 4
