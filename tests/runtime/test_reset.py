"""Starting steps over: what is refused, what is read again, and the way back."""

from __future__ import annotations

import shutil

import pytest

from headrace.checkpoints.lock import Lock
from headrace.errors import GuardError, HeadraceError
from headrace.graph import order
from headrace.runtime import reset
from headrace.runtime.start_guard import StartGuard
from headrace.runtime.step_checkpoint import open_checkpoint

STEPS = """
    land:
      layer: bronze
      reads: {rows: {source: rows, schema: "id INT, n INT"}}
      writes: {table: landed}
    copy: {layer: silver, reads: {rows: {table: landed}}, writes: {table: copied}}
    newest:
      layer: silver
      reads: {rows: {table: landed}}
      writes: {table: newest, mode: upsert, keys: [id], sequence: n}
    """


@pytest.fixture
def ran(flow):
    """A pipeline that has read one file with a good and a bad row, and has another one to read."""
    flow.source("rows")
    flow.steps(STEPS)
    flow.feed("rows", {"id": 1, "n": 1}, "no json")
    flow.run()
    flow.feed("rows", {"id": 1, "n": 2})
    return flow


def start_over(flow, *steps, downstream=False, table=None):
    bundle = flow.bundle()
    planned = reset.plan_reset(flow.spark, bundle, "flow", steps, downstream=downstream, table=table)
    reset.apply_reset(flow.spark, bundle, planned)
    return planned


def values(flow, *tables):
    return [sorted(row["n"] for row in flow.read(table)) for table in tables]


def generation(flow, step):
    return open_checkpoint(flow.bundle(), "flow", step).generation


def test_steps_read_everything_again_into_truncated_tables(ran):
    planned = start_over(ran, "land", downstream=True)
    assert [each.step.name for each in planned] == ["land", "copy", "newest"]
    assert values(ran, "landed", "copied", "newest") == [[1], [1], [1]], "until the next start, nothing changes"
    run = ran.run()
    assert values(ran, "landed", "copied", "newest") == [[1, 2], [1, 2], [2]]
    assert len(run.quarantine("landed")) == 1
    assert not generation(ran, "land").pending_tables
    ran.run()
    assert values(ran, "landed", "copied", "newest") == [[1, 2], [1, 2], [2]]


@pytest.mark.full
def test_checkpoint_that_was_removed_after_a_reset_is_missed(ran):
    """The reset has accepted the table as it was then, not with the rows of the new generation."""
    start_over(ran, "copy")
    ran.run()
    shutil.rmtree(ran.directory / "checkpoints" / "flow" / "copy" / "2")
    with pytest.raises(GuardError, match="the checkpoint of step 'copy' of pipeline 'flow' is missing"):
        ran.run()


@pytest.mark.full
def test_upsert_keeps_its_rows_unless_they_shall_be_truncated(ran):
    (kept,) = start_over(ran, "newest")
    assert [(table.name, table.truncated) for table in kept.tables] == [("newest", False)]
    ran.run()
    assert values(ran, "newest") == [[2]]
    (truncated,) = start_over(ran, "newest", table="truncate")
    assert [(table.name, table.truncated) for table in truncated.tables] == [("newest", True)]
    assert truncated.new_generation == 3


def test_reset_that_would_give_wrong_rows_is_refused(ran, golden):
    messages = []
    for arguments in ({"table": "keep"}, {}, {"table": "truncate"}):
        with pytest.raises(GuardError) as error:
            start_over(ran, "land", **arguments)
        messages.append(str(error.value))
    golden("reset/refused", "\n\n".join(messages))
    assert generation(ran, "land").number == 1


def test_reader_of_the_quarantine_has_to_be_reset_too(flow):
    flow.source("rows")
    flow.steps("""
        land: {layer: bronze, reads: {rows: {source: rows, schema: n INT}}, writes: {table: landed}}
        bad: {layer: silver, reads: {rows: {table: landed_quarantine}}, writes: {table: bad}}
        """)
    with pytest.raises(GuardError, match="step 'bad' streams from a table of step 'land'"):
        start_over(flow, "land")


def test_folder_cannot_start_over(flow):
    flow.source("rows")
    flow.steps("""
        land: {layer: bronze, reads: {rows: {source: rows, schema: n INT}}, writes: {table: landed}}
        out: {layer: silver, reads: {rows: {table: landed}}, writes: {folder: out, format: json}}
        """)
    flow.feed("rows", {"n": 1})
    flow.run()
    with pytest.raises(GuardError, match="Spark would skip the batches of a new checkpoint in folder 'out'") as error:
        start_over(flow, "out")
    assert "set another path under folders" in str(error.value)
    shutil.move(flow.directory / "folders" / "out", flow.directory / "folders" / "before")  # likewise a new path
    start_over(flow, "out")
    flow.run()
    (file,) = (flow.directory / "folders" / "out").glob("*.json")
    assert file.read_text() == '{"n":1}\n'


@pytest.mark.full
def test_undo_of_two_resets_without_a_run_returns_to_the_checkpoint_before_both(ran):
    start_over(ran, "land", downstream=True)
    start_over(ran, "land", downstream=True)
    assert generation(ran, "land").number == 3
    undo(ran)
    assert generation(ran, "land").number == 1
    run = ran.run()
    assert values(ran, "landed", "copied", "newest") == [[1, 2], [1, 2], [2]]
    assert run.total("land", "rows") == 1


@pytest.mark.full
def test_running_step_is_not_reset(ran):
    lock = Lock(ran.spark, str(ran.directory / "checkpoints" / "flow" / "copy"), "copy")
    with pytest.raises(GuardError, match="step 'copy' is already being run"):
        start_over(ran, "land", downstream=True)
    lock.release()
    assert {generation(ran, step).number for step in ("land", "copy", "newest")} == {1}


@pytest.mark.full
def test_reader_of_the_quarantine_does_not_start_before_it_is_truncated(ran):
    bad = "    bad: {layer: silver, reads: {rows: {table: landed_quarantine}}, writes: {table: bad}}\n"
    ran.steps(STEPS.rstrip() + "\n" + bad)
    ran.run()
    start_over(ran, "land", downstream=True)
    with pytest.raises(HeadraceError, match="streams from table 'landed_quarantine', which step 'land' will truncate"):
        ran.run("bad")


def test_reader_does_not_start_before_the_table_that_it_streams_is_truncated(ran):
    start_over(ran, "land", downstream=True)
    with pytest.raises(HeadraceError, match="streams from table 'landed', which step 'land' will truncate"):
        ran.run("copy")
    ran.run("land", "copy")
    assert values(ran, "landed", "copied") == [[1, 2], [1, 2]]


@pytest.mark.full
def test_interrupted_reset_leaves_correct_steps(ran, monkeypatch):
    write, written = reset.write_generation, []

    def write_once(files, new):
        if written:
            raise OSError("disk full")
        written.append(new)
        write(files, new)

    monkeypatch.setattr(reset, "write_generation", write_once)
    with pytest.raises(OSError, match="disk full"):
        start_over(ran, "land", downstream=True)
    assert [generation(ran, step).number for step in ("land", "copy", "newest")] == [1, 1, 2]
    ran.run()
    assert values(ran, "landed", "copied", "newest") == [[1, 2], [1, 2], [2]]


# ── The way back ──────────────────────────────────────────────────────────────────────────────────────


def undo(flow, *steps):
    return reset.undo_reset(flow.spark, flow.bundle(), "flow", steps)


@pytest.mark.full
def test_reset_is_undone(ran):
    start_over(ran, "land", downstream=True)
    undo(ran)
    ran.run()
    assert values(ran, "landed", "copied", "newest") == [[1, 2], [1, 2], [2]]
    assert generation(ran, "land").number == 1


@pytest.mark.full
def test_interrupted_undo_can_be_repeated(ran, monkeypatch):
    start_over(ran, "copy")
    bundle = ran.bundle()
    StartGuard(ran.spark, bundle, "flow", order.select_steps(bundle, "flow", ["copy"])).record_start("copy")

    def fail(*arguments):
        raise OSError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(reset, "restore_version", fail)
        with pytest.raises(OSError, match="killed"):
            undo(ran, "copy")
    assert values(ran, "copied") == [[]]
    undo(ran, "copy")
    assert values(ran, "copied") == [[1]]
    ran.run()
    assert values(ran, "copied") == [[1, 2]]


def test_reset_that_was_planned_before_a_run_or_another_reset_is_refused(ran):
    bundle = ran.bundle()
    planned = reset.plan_reset(ran.spark, bundle, "flow", ["copy"])
    ran.run()
    with pytest.raises(GuardError, match="has been run or reset after this reset was planned"):
        reset.apply_reset(ran.spark, bundle, planned)
    planned = reset.plan_reset(ran.spark, bundle, "flow", ["copy"])
    start_over(ran, "copy")
    with pytest.raises(GuardError, match="has been run or reset after this reset was planned"):
        reset.apply_reset(ran.spark, bundle, planned)
    assert generation(ran, "copy").number == 2


def test_undo_is_refused_if_an_unfinished_batch_may_have_written_to_a_kept_table(ran):
    start_over(ran, "newest")
    ran.run("newest")
    (ran.directory / "checkpoints" / "flow" / "newest" / "2" / "spark" / "commits" / "0").unlink()
    with pytest.raises(GuardError, match="has written rows since its reset"):
        undo(ran, "newest")


@pytest.mark.full
def test_undo_restores_a_table_that_a_start_has_truncated(ran):
    start_over(ran, "copy")
    bundle = ran.bundle()
    steps = order.select_steps(bundle, "flow", ["copy"])
    StartGuard(ran.spark, bundle, "flow", steps).record_start("copy")
    assert values(ran, "copied") == [[]]
    undo(ran, "copy")
    assert values(ran, "copied") == [[1]]
    ran.run()
    assert values(ran, "copied") == [[1, 2]]


@pytest.mark.full
@pytest.mark.parametrize(("resets", "message"), [(0, "has no reset that could be undone"), (1, "has written rows")])
def test_reset_that_cannot_be_undone(ran, resets, message):
    if resets:
        start_over(ran, "copy")
        ran.run("copy")
    with pytest.raises(GuardError, match=message):
        undo(ran, "copy")


@pytest.mark.full
def test_undo_is_refused_if_a_step_would_read_restored_rows_twice(ran):
    start_over(ran, "land", downstream=True)
    bundle = ran.bundle()
    StartGuard(ran.spark, bundle, "flow", order.select_steps(bundle, "flow", ["land"])).record_start("land")
    with pytest.raises(
        GuardError, match="streams from a table that the reset truncated, and would read its rows twice"
    ):
        undo(ran)
    ran.run()
    assert values(ran, "landed", "copied", "newest") == [[1, 2], [1, 2], [2]]
