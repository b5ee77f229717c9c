"""Tables and checkpoints that an older version wrote: see fixtures/first_checkpoints."""

from __future__ import annotations

import json
import os
import tarfile
import time
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from headrace.errors import GuardError
from headrace.testing import run_pipeline

ARCHIVES = Path(__file__).parents[1] / "fixtures" / "first_checkpoints"
STEPS = ("land", "copy", "newest", "count")


@pytest.fixture(params=["4.1", "4.2"])
def bundle(request, spark, tmp_path):
    """The bundle of an archive, with a duplicate row and a new one to read."""
    if request.param > spark.version:
        pytest.skip("an older Spark cannot read checkpoints of a newer one")
    with tarfile.open(ARCHIVES / f"spark-{request.param}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    for log in tmp_path.glob("checkpoints/*/*/*/spark/sources/0/*"):
        log.write_text(log.read_text().replace("file:///BUNDLE", tmp_path.as_uri()))
    add_rows(
        tmp_path, {"id": "c", "n": 6, "at": "2026-01-01T12:09:00Z"}, {"id": "d", "n": 7, "at": "2026-01-01T12:30:00Z"}
    )
    return tmp_path


def add_rows(bundle, *rows):
    file = bundle / "data" / "rows" / "new.json"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(file, (time.time() - 10,) * 2)


def run(spark, bundle):
    return run_pipeline(spark, bundle, "flow", bundle)


def warnings(ran):
    return sorted((event.step, event.message) for event in ran.events if event.what == "warning")


def values(bundle, table, column):
    return sorted(DeltaTable(str(bundle / "tables" / table)).to_pyarrow_table()[column].to_pylist())


@pytest.mark.full
def test_older_checkpoints_are_continued_and_new_rows_are_read_once(spark, bundle):
    not_compared = "its query was not compared with the one that wrote its checkpoint"
    assert warnings(run(spark, bundle)) == sorted((step, not_compared) for step in STEPS)
    assert values(bundle, "landed", "n") == values(bundle, "copied", "n") == [1, 2, 5, 7], "6 is a duplicate"
    assert values(bundle, "newest", "n") == [1, 2, 5, 7]
    times = values(bundle, "counted", "window_start")
    assert [time - times[0] for time in times] == [timedelta(minutes=minutes) for minutes in (0, 1, 9)]
    assert values(bundle, "counted", "rows") == [1, 1, 1]
    again = run(spark, bundle)
    assert warnings(again) == []
    assert again.total("land", "rows") == 0
    assert values(bundle, "copied", "n") == [1, 2, 5, 7]


@pytest.mark.full
def test_table_without_a_transaction_of_the_older_checkpoint_is_refused(spark, bundle):
    log = bundle / "tables" / "copied" / "_delta_log"
    for commit in log.glob("*.json"):
        lines = [line for line in commit.read_text().splitlines() if '"txn"' not in line]
        commit.write_text("\n".join(lines) + "\n")
    for checksum in log.glob("*.crc"):  # it lists the transactions too
        checksum.unlink()
    before = values(bundle, "copied", "n")
    with pytest.raises(GuardError, match="table 'copied' has rows that no known step wrote") as error:
        run(spark, bundle)
    assert len(error.value.problems) == 1
    assert values(bundle, "copied", "n") == before
