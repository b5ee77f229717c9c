"""Changed steps: what a restart on an old checkpoint accepts, notes or refuses, and what resolves a refusal."""

from __future__ import annotations

import json
import re

import pytest
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from headrace.checkpoints.step_record import StepRecord
from headrace.config.locations import KeyLocations
from headrace.config.models import KafkaSource, Read, Step
from headrace.errors import GuardError
from headrace.runtime import reset
from headrace.runtime.change_guard import StepChanges, change_problems, described_sources, find_changes
from headrace.runtime.events import read_events
from headrace.signatures.changes import Change, Verdict
from inputs import environment, files

ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
LAND = """
    land: {layer: bronze, reads: {rows: {source: rows, schema: "id INT, n INT, at TIMESTAMP"}}, writes: {table: landed}}
    """
STEP = """
    step:
      layer: silver
      reads: {{rows: {{table: landed, watermark: {{column: at, delay: 1 minute}}}}}}
      transform: {transform}
      with: {settings}
      writes: {{table: result{sink}}}
      {more}
    """
COUNT = "{{time: at, window: {window}, aggregates: {{rows: {{count: '*'}}}}}}"


def add(rows, /, *, amount: int):
    return rows.withColumn("n", F.col("n") + amount)


def last_of_each(rows, /, *, add_to: int):
    """Keep a state of its own."""

    def last(key, frames, state):
        import pandas

        total = sum(int(frame.n.sum()) for frame in frames) + (state.get[0] if state.exists else 0)
        state.update((total,))
        yield pandas.DataFrame({"id": [key[0]], "n": [total + add_to]})

    return rows.groupBy("id").applyInPandasWithState(last, "id INT, n LONG", "n LONG", "append", "NoTimeout")


def total_of_each(rows, /, *, amount: int):
    """Sum up the rows of each id in a state variable. Python workers cannot import the tests, so the class is local."""

    class Total(StatefulProcessor):
        def __init__(self, amount):
            self.amount = amount

        def init(self, handle):
            self.total = handle.getValueState("total", "total LONG")

        def handleInputRows(self, key, rows, timers):  # noqa: N802 (Spark's name)
            import pandas

            old = self.total.get()[0] if self.total.exists() else 0
            total = old + sum(int(frame.n.sum()) + self.amount for frame in rows)
            self.total.update((total,))
            yield pandas.DataFrame({"id": [key[0]], "total": [total]})

        def close(self):
            pass

    return rows.groupBy("id").transformWithStateInPandas(Total(amount), "id INT, total LONG", "Update", "None")


def step(settings="{keys: [id]}", transform="headrace.transforms.bronze:deduplicate", sink="", more=""):
    return LAND + STEP.format(transform=transform, settings=settings, sink=sink, more=more)


def count(window):
    return step(COUNT.format(window=window), "headrace.transforms.gold:aggregate_windows")


def added(amount, sink=""):
    return step(f"{{amount: {amount}}}", f"{__name__}:add", sink)


@pytest.fixture
def rows(flow):
    flow.source("rows")
    return flow


def run_twice(flow, before, after):
    """Run a step, change it, and run it again with new rows. Return the notes of the second run."""
    run_once(flow, before)
    flow.steps(after)
    flow.feed("rows", {"id": 2, "n": 2, "at": "2026-01-01T12:30:00Z"})
    return notes(flow)


def run_once(flow, steps):
    flow.steps(steps)
    flow.feed("rows", {"id": 1, "n": 1, "at": "2026-01-01T12:00:00Z"})
    flow.run()


def record_of(flow):
    return flow.directory / "checkpoints" / "flow" / "step" / "1" / "signature.json"


def notes(flow):
    flow.run()
    events = list(read_events(flow.bundle().run_files_directory, "flow"))
    last = max(event.run for event in events)
    return [event.message for event in events if event.run == last and event.what == "warning"]


def digest_of(message):
    return message.partition("accept: [")[2].partition("]")[0]


def test_unchanged_step_starts_without_a_note(rows):
    assert run_twice(rows, step(), step()) == []
    record = json.loads(record_of(rows).read_text())
    assert record["signature"]["sources"] == [{"input": "rows", "kind": "table", "name": "table landed"}]
    assert record["changes"] == []


def test_changed_window_is_refused_until_the_step_starts_over(rows, golden):
    with pytest.raises(GuardError) as error:
        run_twice(rows, count("15 minutes"), count("5 minutes"))
    message = str(error.value)
    golden("change_guard/window", message.replace(digest_of(message), "DIGEST"))
    bundle = rows.bundle()
    planned = reset.plan_reset(rows.spark, bundle, "flow", ["step"], downstream=False, table=None)
    reset.apply_reset(rows.spark, bundle, planned)
    rows.run()
    lengths = {row["window_end"] - row["window_start"] for row in rows.read("result")}
    assert {length.total_seconds() for length in lengths} == {300}


@pytest.mark.full
def test_accepted_change_starts_and_is_recorded(rows):
    with pytest.raises(GuardError, match="id → n") as error:
        run_twice(rows, step(), step("{keys: [n]}"))
    rows.steps(step("{keys: [n]}", more=f"accept: [{digest_of(str(error.value))}]"))
    (note,) = notes(rows)
    assert note.startswith("accepted: ")
    assert [change["change"] for change in json.loads(record_of(rows).read_text())["changes"]] == [note]
    assert notes(rows) == [], "the new query is the recorded one now"


def test_changed_formula_is_noted(rows):
    (note,) = run_twice(rows, added(1), added(10))
    assert "(rows.n + 1) → (rows.n + 10)" in note
    assert sorted(row["n"] for row in rows.read("result")) == [2, 12]


@pytest.mark.full
def test_changed_state_function_has_to_be_accepted(rows):
    before, after = (step(f"{{add_to: {amount}}}", f"{__name__}:last_of_each") for amount in (1, 2))
    with pytest.raises(GuardError, match=r"if the new code suits the old state, accept: \["):
        run_twice(rows, before, after)


@pytest.mark.full
def test_changed_sink_is_refused(rows):
    with pytest.raises(GuardError, match="mode of table result append → upsert"):
        run_twice(rows, added(1), added(1, ", mode: upsert, keys: [id], sequence: n"))


@pytest.mark.full
def test_source_at_another_path_is_refused(rows):
    run_once(rows, LAND)
    moved = rows.directory / "data" / "moved"
    rows.other_source("rows", kind="files", format="json", path=str(moved))
    (rows.directory / "data" / "rows").rename(moved)
    with pytest.raises(GuardError, match=r"path of input rows .*/data/rows → .*/data/moved") as error:
        rows.run()
    rows.steps(LAND.replace("writes:", f"accept: [{digest_of(str(error.value))}], writes:"))
    assert len(rows.run().rows("landed")) == 2, "the file has another path, so it is new"


@pytest.mark.full
def test_additional_table_gets_new_rows_only(rows):
    before = step("{amount: 1}", f"{__name__}:add")
    after = before.replace("writes: {table: result}", "writes: [{table: result}, {table: more}]")
    (note,) = run_twice(rows, before, after)
    assert note.startswith("sinks table result → table result; table more")
    assert [len(rows.read(table)) for table in ("result", "more")] == [2, 1]
    assert notes(rows) == []


def test_kind_and_topics_of_a_source_are_compared():
    read = Step(name="s", layer="bronze", reads={"rows": Read(source="rows")}, writes=())
    kafka = KafkaSource(kind="kafka", servers="broker:9092", topics=("b", "a"))
    assert described_sources(read, environment(rows=kafka)) == {"rows": {"kind": "kafka", "topics": "a, b"}}
    assert described_sources(read, environment(rows=files("data"))) == {"rows": {"kind": "files", "path": "data"}}
    for path in ("/data/in", "/data/in/", "/data/./in", "file:///data/in"):
        assert described_sources(read, environment(rows=files(path)))["rows"]["path"] == "/data/in"
    assert described_sources(read, environment(rows=files("s3://b/in/")))["rows"]["path"] == "s3://b/in"
    assert described_sources(read, environment(rows=files("data", fileNameOnly=True))) == {"rows": {"kind": "files"}}


@pytest.mark.parametrize(
    ("old", "new", "verdict", "sentence"),
    [
        ({"topics": ("a",)}, {"topics": ("b", "a")}, Verdict.SAFE_FOR_NEW_ROWS, "topics of input rows a → a, b: new"),
        ({"topics": ("a",)}, {"topics": ("a",), "start": "latest"}, None, ""),
        ({"topics": ("a",)}, {"topics": ("a",), "servers": "other:9092"}, None, ""),
        (None, {"topics": ("a",)}, Verdict.NEEDS_NEW_GENERATION, "kind of input rows files → kafka"),
    ],
)
def test_changed_sources_of_the_environment(old, new, verdict, sentence):
    """Without a checkpoint on this machine's disk, Spark is not asked."""
    read = Step(name="s", layer="bronze", reads={"rows": Read(source="rows")}, writes=())
    before, after = (
        environment(rows=KafkaSource(**{"kind": "kafka", "servers": "broker:9092", **keys}) if keys else files("data"))
        for keys in (old, new)
    )
    record = StepRecord(inputs=described_sources(read, before))
    found = find_changes(read, after, record, None, None, "s3://bucket/checkpoint").changes
    assert [each.verdict for each in found] == ([verdict] if verdict else [])
    assert all(each.sentence.startswith(sentence) for each in found)


def test_change_that_spark_would_refuse_is_not_offered_for_acceptance():
    """Neither is another change of the same step: to accept it would not start the step."""
    code = Change("stateful[0].code", "a", "b", Verdict.UNKNOWN, "the code")
    state = Change("stateful[0].state", "a", "b", Verdict.NEEDS_NEW_GENERATION, "the state")
    read = Step(name="s", layer="bronze", reads={"rows": Read(source="rows")}, writes=())

    def fixes(*changes):
        problems = change_problems(
            read, StepChanges(changes, digest="a1"), KeyLocations("flow.yml"), "headrace reset flow --step s"
        )
        return [problem.fix for problem in problems]

    undo = "undo the change, or start over: headrace reset flow --step s"
    assert fixes(code, state) == [undo, undo]
    (fix,) = fixes(code)
    assert fix == f'if the new code suits the old state, accept: ["a1"] in the step; otherwise {undo}'


@pytest.mark.full
def test_changed_state_processor_has_to_be_accepted(rows):
    more = "output: update\n      settings: {spark.sql.streaming.stateStore.providerClass: " + ROCKS_DB + "}"
    sink = ", mode: upsert, keys: [id], sequence: total"
    before, after = (step(f"{{amount: {amount}}}", f"{__name__}:total_of_each", sink, more) for amount in (1, 2))
    with pytest.raises(GuardError, match=r"settings of transformWithState .* depends on the code") as error:
        run_twice(rows, before, after)
    rows.steps(after.replace("output: update", f"accept: [{digest_of(str(error.value))}]\n      output: update"))
    (note,) = notes(rows)
    assert note.startswith("accepted: settings of transformWithState")


@pytest.mark.full
def test_checkpoint_of_an_older_version_is_not_compared(rows):
    run_once(rows, step())
    record_of(rows).unlink()
    assert notes(rows) == ["its query was not compared with the one that wrote its checkpoint"]
    assert notes(rows) == []


def pretend_upgrade(flow, **parts):
    """Change the recorded signature as if Spark 4.1.0 had computed it, with these parts."""
    record = json.loads(record_of(flow).read_text())
    record["signature"] |= {"spark": "4.1.0", **parts}
    record_of(flow).write_text(json.dumps(record))


UPGRADE = r"versions Spark 4\.1\.0, Python 3\.\d+, format 1 → Spark 4\.2\.0, Python 3\.\d+, format 1: "


def test_first_start_after_an_upgrade_names_both_versions(rows):
    run_once(rows, step())
    pretend_upgrade(rows, others=["text of another version"])
    (note,) = notes(rows)
    assert re.fullmatch(UPGRADE + "texts and code cannot be compared; Spark itself has compared the state", note)
    assert notes(rows) == []
    pretend_upgrade(rows)
    (note,) = notes(rows)
    assert re.fullmatch(UPGRADE + "the query is the same", note)


@pytest.mark.full
def test_state_that_spark_refuses_after_an_upgrade_is_refused(rows):
    run_once(rows, step())
    pretend_upgrade(rows, others=["text of another version"])
    rows.steps(step("{keys: [id, n]}"))
    with pytest.raises(GuardError, match=r"keys of .* id → id, n: Spark refuses the old state"):
        rows.run()


@pytest.mark.full
def test_state_that_spark_refuses_is_refused_without_a_signature(rows):
    run_once(rows, step())
    record_of(rows).unlink()
    rows.steps(step("{keys: [id, n]}"))
    with pytest.raises(GuardError, match="Spark refuses the checkpoint: STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE"):
        rows.run()


@pytest.mark.full
def test_setting_that_the_checkpoint_has_frozen_is_noted(rows):
    found = run_twice(rows, step(), step(more="settings: {spark.sql.shuffle.partitions: 7}"))
    assert found == [
        "spark.sql.shuffle.partitions stays 2, as in the checkpoint; 7 has no effect before the step is reset"
    ]
