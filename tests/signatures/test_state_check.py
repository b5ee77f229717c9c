"""Spark's check of the state says before a start what a restart would do, and changes nothing."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from headrace.signatures import state_check
from headrace.signatures.changes import Verdict
from headrace.signatures.compare import compare
from headrace.signatures.state_check import StateCheck, check_state
from query_changes import count_rows
from signature_queries import (
    CUSTOMER,
    ORDER,
    RETURN,
    Inputs,
    aggregate,
    deduplicate_within_watermark,
    empty_inputs,
    join,
    signature_of,
    windows,
)

MODES = {"sums": "update", "counts": "update"}
QUERIES = {
    "plain": lambda inputs: inputs.timed,
    "ids": deduplicate_within_watermark("id"),
    "sums": aggregate("sum(amount)"),
    "windows": windows("15 minutes"),
    "join": join(),
    "counts": count_rows(),
}
# The query of the checkpoint, the changed query, and whether Spark refuses it.
CHANGES = {
    "unchanged dedup": ("ids", QUERIES["ids"], False),
    "dedup key swapped": ("ids", deduplicate_within_watermark("customer"), False),
    "dedup key type": ("ids", deduplicate_within_watermark("n"), True),
    "operator removed": ("ids", QUERIES["plain"], True),
    "operator added": ("plain", QUERIES["ids"], True),
    "unchanged without state": ("plain", QUERIES["plain"], False),
    "unchanged aggregation": ("sums", QUERIES["sums"], False),
    "sum to avg": ("sums", aggregate("avg(amount)"), True),
    "sum to max": ("sums", aggregate("max(amount)"), False),
    "group key added": ("sums", aggregate("sum(amount)", by=("customer", "region")), True),
    "window size": ("windows", windows("5 minutes"), False),
    "window slide added": ("windows", windows("15 minutes", "5 minutes"), True),
    "unchanged join": ("join", QUERIES["join"], False),
    "inner join to left join": ("join", join(how="left"), True),
    "unchanged state function": ("counts", QUERIES["counts"], False),
    "state function's state": ("counts", count_rows(state_type="count STRING"), True),
}


def add_rows(spark, data, day):
    order = f"SELECT 'o', 'c', 'r', timestamp'2026-01-{day} 12:00', timestamp'2026-01-{day} 12:00', 1D, 2D, 3"
    spark.sql(order).toDF(*field_names(ORDER)).coalesce(1).write.mode("append").parquet(str(data / "orders"))
    returned = f"SELECT 'r', 'o', 'c', timestamp'2026-01-{day} 12:10', 'broken'"
    spark.sql(returned).toDF(*field_names(RETURN)).coalesce(1).write.mode("append").parquet(str(data / "returns"))


def field_names(ddl):
    return [field.split()[0] for field in ddl.split(", ")]


def run(query, inputs, mode, checkpoint):
    writer = query(inputs).writeStream.format("noop").outputMode(mode).trigger(availableNow=True)
    writer.option("checkpointLocation", str(checkpoint)).start().awaitTermination()


@pytest.fixture(scope="module")
def real(spark, tmp_path_factory):
    """Inputs with rows, and the checkpoints of all queries; then there are new rows."""
    directory = tmp_path_factory.mktemp("real")
    add_rows(spark, directory, "01")
    orders = spark.readStream.schema(ORDER).parquet(str(directory / "orders"))
    returns = spark.readStream.schema(RETURN).parquet(str(directory / "returns"))
    static = spark.createDataFrame([], CUSTOMER)
    inputs = Inputs(orders, returns, static, static)
    for name, query in QUERIES.items():
        run(query, inputs, MODES.get(name, "append"), directory / name)
    add_rows(spark, directory, "02")
    return SimpleNamespace(inputs=inputs, directory=directory)


@pytest.fixture(scope="module")
def empty(spark, tmp_path_factory):
    return empty_inputs(spark, tmp_path_factory.mktemp("empty"))


def restart_error(query, inputs, mode, checkpoint):
    try:
        run(query, inputs, mode, checkpoint)
    except Exception as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("name", "query", "refused"), CHANGES.values(), ids=CHANGES)
def test_check_agrees_with_a_restart(real, empty, tmp_path, name, query, refused):
    mode = MODES.get(name, "append")
    checkpoint = shutil.copytree(real.directory / name, tmp_path / "checkpoint")
    check = check_state(query(real.inputs), mode, str(checkpoint))
    assert check.outcome == ("refused" if refused else "accepted")
    error = restart_error(query, real.inputs, mode, checkpoint)
    assert bool(error) is refused
    assert check.reason.partition(":")[0] in error
    old, new = signature_of(QUERIES[name](empty), mode=mode), signature_of(query(empty), mode=mode)
    verdicts = {change.verdict for change in compare(old, new, state_check=check)}
    assert (Verdict.NEEDS_NEW_GENERATION in verdicts) is refused
    assert (Verdict.WRONG_ROWS in verdicts) is (old != new and not refused)


def contents(directory):
    return {str(path): path.read_bytes() for path in sorted(Path(directory).rglob("*")) if path.is_file()}


@pytest.mark.parametrize("query", [QUERIES["ids"], deduplicate_within_watermark("n")])
def test_checkpoint_and_session_stay_as_they_are(spark, real, query):
    """The checkpoint's settings apply to the check only."""
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    before = contents(real.directory / "ids")
    active = SparkSession.getActiveSession()
    try:
        spark.conf.set("spark.sql.shuffle.partitions", "7")
        settings = dict(spark.conf.getAll)
        check_state(query(real.inputs), "append", str(real.directory / "ids"))
        assert dict(spark.conf.getAll) == settings
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", partitions)
    assert contents(real.directory / "ids") == before
    assert SparkSession.getActiveSession() is active


@pytest.mark.parametrize(
    "error",
    [
        AttributeError("no such class"),
        TypeError("'JavaPackage' object is not callable"),
        Py4JError("Constructor IncrementalExecution([…]) does not exist"),
        RuntimeError("anything else"),
    ],
)
def test_other_internals_of_spark_are_no_error(real, monkeypatch, error):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr(state_check, "plan_batch", fail)
    check = check_state(QUERIES["ids"](real.inputs), "append", str(real.directory / "ids"))
    assert check.outcome == "not checked"
    assert type(error).__name__ in check.reason


def test_session_without_a_jvm_is_not_checked(real):
    remote = SimpleNamespace(sparkSession=SimpleNamespace())
    assert check_state(remote, "append", str(real.directory / "ids")).outcome == "not checked"


@pytest.mark.parametrize("lost", ["metadata", "offsets", "commits/0"])
def test_incomplete_checkpoint(real, tmp_path, lost):
    checkpoint = shutil.copytree(real.directory / "ids", tmp_path / "checkpoint")
    path = checkpoint / lost
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    check = check_state(QUERIES["ids"](real.inputs), "append", str(checkpoint))
    assert check.outcome == ("accepted" if lost == "commits/0" else "not checked")


@pytest.mark.parametrize(
    ("checkpoint", "reason"),
    [
        ("s3://bucket/checkpoint", "s3://bucket/checkpoint is not a local directory"),
        ("/no/such/checkpoint", "the checkpoint cannot be read: "),
    ],
)
def test_checkpoint_that_cannot_be_read_is_not_checked(real, checkpoint, reason):
    check = check_state(QUERIES["ids"](real.inputs), "append", checkpoint)
    assert check.outcome == "not checked"
    assert check.reason.startswith(reason)


def test_checkpoint_without_a_batch_is_not_checked(real, tmp_path):
    (tmp_path / "metadata").write_text("v1")
    check = check_state(QUERIES["ids"](real.inputs), "append", f"file://{tmp_path}")
    assert check == StateCheck.not_checked("the checkpoint has no batch")
