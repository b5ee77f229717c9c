"""`reset --from`: where the steps of a reset start to read tables and topics, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headrace.errors import GuardError
from headrace.io.start_position import parse_position
from headrace.runtime import reset
from headrace.runtime.reset_text import format_resets
from headrace.testing.kafka_broker import KafkaBroker

STEPS = """
    land:
      layer: bronze
      reads: {rows: {source: rows, schema: "id INT, n INT"}}
      writes: {table: landed}
    copy: {layer: silver, reads: {rows: {table: landed}}, writes: {table: copied}}
    """


@pytest.fixture
def ran(flow):
    """A pipeline whose step `land` has written two versions, 0 and 2, of table `landed`."""
    flow.source("rows")
    flow.steps(STEPS)
    for number in (1, 2):
        flow.feed("rows", {"id": number, "n": number})
        flow.run()
    return flow


def start_over(flow, *steps, position, table="truncate", downstream=False):
    bundle = flow.bundle()
    planned = reset.plan_reset(
        flow.spark, bundle, "flow", steps, downstream=downstream, table=table, position=parse_position(position)
    )
    reset.apply_reset(flow.spark, bundle, planned)
    return planned


def values(flow, table):
    return sorted(row["n"] for row in flow.read(table))


def feed_and_run(flow, number):
    flow.feed("rows", {"id": number, "n": number})
    flow.run()


def version_of(flow, table):
    return max(int(file.stem) for file in (flow.directory / "tables" / table / "_delta_log").glob("*.json"))


def test_table_is_not_truncated_if_its_rows_would_not_be_read_again(ran, golden):
    """`--from checkpoint` with a truncated table would leave a table without the rows from before."""
    with pytest.raises(GuardError) as error:
        start_over(ran, "copy", position="checkpoint", table=None)
    golden("reset/would_lose_rows", str(error.value))
    assert values(ran, "copied") == [1, 2]
    (planned,) = start_over(ran, "copy", position="beginning", table=None)
    assert [table.truncated for table in planned.tables] == [True]


@pytest.mark.full
def test_table_is_read_from_a_version(ran):
    newest = version_of(ran, "landed")
    (planned,) = start_over(ran, "copy", position=str(newest))
    assert f"reads table landed from version {newest}" in format_resets([planned])
    feed_and_run(ran, 3)
    assert values(ran, "copied") == [2, 3]
    feed_and_run(ran, 4)
    assert values(ran, "copied") == [2, 3, 4]


def test_table_is_read_from_where_the_previous_checkpoint_stopped(ran, golden):
    """The next version of the table does not exist yet. The rows of the kept table are neither lost nor doubled."""
    golden("reset/from_checkpoint", format_resets(start_over(ran, "copy", position="checkpoint", table="keep")))
    ran.run()
    assert values(ran, "copied") == [1, 2]
    feed_and_run(ran, 3)
    assert values(ran, "copied") == [1, 2, 3]
    ran.feed("rows", {"id": 4, "n": 4})
    ran.run("land")
    start_over(ran, "copy", position="checkpoint", table="keep")  # now the next version exists
    ran.run()
    assert values(ran, "copied") == [1, 2, 3, 4]


@pytest.mark.full
def test_table_is_read_from_a_time(ran):
    log = ran.directory / "tables" / "landed" / "_delta_log" / f"{version_of(ran, 'landed'):020}.json"
    committed = datetime.fromtimestamp(log.stat().st_mtime, UTC)
    start_over(ran, "copy", position=committed.replace(tzinfo=None).isoformat())  # in the session's time zone, UTC
    ran.run()
    assert values(ran, "copied") == [2]
    start_over(ran, "copy", position="2999-01-01T00:00+01:00")
    feed_and_run(ran, 3)
    assert values(ran, "copied") == []


def test_table_that_is_truncated_is_read_from_the_beginning(ran):
    """Only the inputs that the reset does not truncate start at the position."""
    ran.steps(STEPS.rstrip() + "\n    again: {layer: gold, reads: {rows: {table: copied}}, writes: {table: again}}\n")
    ran.run()
    newest = version_of(ran, "landed")
    planned = start_over(ran, "copy", position=str(newest), downstream=True)
    text = format_resets(planned)
    assert f"reads table landed from version {newest}" in text
    assert "reads table copied from the beginning" in text
    ran.run()
    assert values(ran, "again") == [2]


def test_files_are_read_from_the_beginning(ran, golden):
    with pytest.raises(GuardError) as error:
        start_over(ran, "land", position="2026-01-01", downstream=True)
    golden("reset/from_time_of_files", str(error.value))
    planned = start_over(ran, "land", position="beginning", downstream=True)
    assert "reads table landed from the beginning" in format_resets(planned)
    ran.run()
    assert values(ran, "copied") == [1, 2]


@pytest.mark.parametrize(
    ("position", "table", "message"),
    [
        ("99", None, "table 'landed' has no version 99"),
        ('{"orders": {"0": 1}}', None, "a table has no topics"),
        ("0", "keep", "would append rows to table 'copied' a second time"),
    ],
)
def test_position_that_is_refused(ran, position, table, message):
    with pytest.raises(GuardError, match=message) as error:
        start_over(ran, "copy", position=position, table=table)
    if table:
        assert "--from checkpoint" in str(error.value)
        start_over(ran, "copy", position="checkpoint", table=table)


@pytest.mark.full
def test_skipped_versions_are_counted(ran):
    feed_and_run(ran, 3)
    ran.feed("rows", {"id": 4, "n": 4})
    ran.run("land")
    (planned,) = start_over(ran, "copy", position=str(version_of(ran, "landed")), table="keep")
    assert not planned.starts["rows"].skipped
    ran.feed("rows", {"id": 5, "n": 5})
    ran.run("land")
    reset.undo_reset(ran.spark, ran.bundle(), "flow", ["copy"])
    (planned,) = start_over(ran, "copy", position=str(version_of(ran, "landed")), table="keep")
    assert "; skips 1 version" in format_resets([planned])
    ran.run("copy")
    assert values(ran, "copied") == [1, 2, 3, 5]


def test_offset_of_another_input_is_no_position(ran):
    """The offset in the checkpoint of `copy` belongs to the table that it read before."""
    other = (
        "    other: {layer: bronze, reads: {rows: {source: rows, schema: 'id INT, n INT'}}, writes: {table: other}}\n"
    )
    ran.steps(STEPS.rstrip() + "\n" + other)
    ran.run()
    ran.steps(STEPS.replace("{rows: {table: landed}}", "{rows: {table: other}}").rstrip() + "\n" + other)
    with pytest.raises(GuardError, match="the position of the previous checkpoint is unknown"):
        start_over(ran, "copy", position="checkpoint", table="keep")


def test_files_have_no_position(flow):
    flow.source("rows")
    flow.steps(STEPS)
    with pytest.raises(GuardError, match="a source of kind files can only be read from the beginning"):
        start_over(flow, "land", position="checkpoint")


@pytest.mark.full
def test_input_that_chooses_its_start_itself(ran):
    ran.steps(STEPS.replace("{table: landed}}, writes", "{table: landed, options: {startingVersion: 0}}}, writes"))
    with pytest.raises(GuardError, match="option startingVersion already sets where this input starts"):
        start_over(ran, "copy", position="1")
    planned = reset.plan_reset(ran.spark, ran.bundle(), "flow", ["copy"])
    assert "reads table landed from the position in its option startingVersion" in format_resets(planned)


@pytest.mark.full
def test_state_starts_empty(flow):
    flow.source("rows")
    flow.steps("""
        land: {layer: bronze, reads: {rows: {source: rows, schema: "id INT, at TIMESTAMP"}}, writes: {table: landed}}
        unique:
          layer: silver
          reads: {rows: {table: landed, watermark: {column: at, delay: 1 hour}}}
          transform: headrace.transforms.bronze:deduplicate
          with: {keys: [id]}
          writes: {table: unique}
        """)
    flow.feed("rows", {"id": 1, "at": "2026-01-01T00:00:00Z"})
    flow.run()
    (planned,) = start_over(flow, "unique", position="checkpoint", table="keep")
    assert planned.warnings == (
        "the state starts empty: windows, joins and deduplication do not include rows from before this position",
    )


# ── Topics ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def broker(spark):
    with KafkaBroker(spark) as running:
        yield running


@pytest.fixture
def topic(flow, broker):
    """A pipeline that has read two of the three records of a topic, and will read all of them again after a reset."""
    broker.create_topic("words")
    flow.other_source("words", kind="kafka", format="text", servers=broker.servers, topics=["words"])
    flow.steps("land: {layer: bronze, reads: {words: {source: words}}, writes: {table: words}}")
    broker.send("words", ["one", "two"])
    flow.run()
    broker.send("words", ["three"])
    yield flow
    broker.delete_topic("words")


def words(flow):
    return sorted(row["value"] for row in flow.read("words"))


@pytest.mark.full
def test_topic_is_read_from_offsets_the_checkpoint_and_a_time(topic, broker):
    start_over(topic, "land", position="checkpoint", table="keep")
    topic.run()
    assert words(topic) == ["one", "three", "two"]
    (planned,) = start_over(topic, "land", position='{"words": {"0": 1}}')
    assert 'from the offsets {"words": {"0": 1}}' in format_resets([planned])
    topic.run()
    assert words(topic) == ["three", "two"]
    now = datetime.now(UTC)  # the earlier records were read by a run, so they are older
    broker.send("words", ["four"])
    start_over(topic, "land", position=now.isoformat())
    topic.run()
    assert words(topic) == ["four"]
    broker.send("words", ["five", "six"])
    (planned,) = start_over(topic, "land", position='{"words": {"0": 5}}', table="keep")
    assert planned.starts["words"].skipped == "1 record"
    topic.run()
    assert words(topic) == ["four", "six"]
    start_over(topic, "land", position="beginning")
    topic.run()
    assert words(topic) == ["five", "four", "one", "six", "three", "two"]


@pytest.mark.full
@pytest.mark.parametrize(
    ("position", "table", "message"),
    [
        ("7", None, "topics have no versions"),
        ('{"word": {"0": 1}}', None, "topic 'word' is not one of the source's topics"),
        ('{"words": {"1": 1}}', None, "the offsets lack partition 0 of topic 'words'"),
        ('{"words": {"0": 1}}', "keep", "a second time"),
        ("beginning", "keep", "a second time"),
    ],
)
def test_position_of_a_topic_that_is_refused(topic, position, table, message):
    with pytest.raises(GuardError, match=message):
        start_over(topic, "land", position=position, table=table)
