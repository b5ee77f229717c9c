"""The cleanup after many queries: threads and listeners do not grow with their number."""

from __future__ import annotations

import threading

import pytest

from headrace.runtime.py4j_cleanup import Py4jCleanup
from processes import wait_until


@pytest.fixture
def run_queries(spark, tmp_path):
    """Run a number of queries with state, one after the other; each of them calls Python."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "lines.txt").write_text("a\nb\na\n")
    lines = spark.readStream.text(str(tmp_path / "in")).groupBy("value").count()
    rows = []
    number = iter(range(100))

    def run(queries: int) -> list[tuple[str, int]]:
        rows.clear()
        for _ in range(queries):
            query = (
                lines.writeStream.foreachBatch(lambda batch, _: rows.extend(tuple(row) for row in batch.collect()))
                .outputMode("complete")
                .option("checkpointLocation", str(tmp_path / f"checkpoint-{next(number)}"))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
        return sorted(rows)

    return run


def test_threads_and_listeners_of_ended_queries_are_removed(spark, run_queries):
    run_queries(1)
    cleanup = Py4jCleanup(spark)
    threads, listeners = threading.active_count(), len(cleanup._listener_buses())
    run_queries(3)
    assert threading.active_count() >= threads + 3
    assert len(cleanup._listener_buses()) == listeners + 3
    cleanup.run()
    assert len(cleanup._listener_buses()) == listeners
    cleanup.run()
    wait_until(lambda: threading.active_count() <= threads, "the threads of the queries to end")
    assert run_queries(1) == [("a", 2), ("b", 1)]
