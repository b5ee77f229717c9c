"""The content of Spark's checkpoints, complete and damaged."""

from __future__ import annotations

import pytest

from headrace.checkpoints.checkpoint_files import DiskFiles
from headrace.checkpoints.spark_checkpoint import SparkCheckpoint, read_checkpoint

OFFSETS = 'v1\n{"batchWatermarkMs":0,"conf":{"spark.sql.shuffle.partitions":"2"}}\n{"logOffset":0}'
FILES = {
    "metadata": '{"id":"q"}',
    **{f"offsets/{number}": OFFSETS for number in (4, 5, 6)},
    **{f"commits/{number}": "v1\n{}" for number in (4, 5)},
    "offsets/.6.crc": "",
}


@pytest.fixture
def read(tmp_path):
    """Write the complete checkpoint with some files changed, or omitted if they are None, and read it."""

    def write_and_read(**changes):
        for name, content in {**FILES, **{name.replace("_", "/"): text for name, text in changes.items()}}.items():
            if content is not None:
                file = tmp_path / "spark" / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content)
        return read_checkpoint(DiskFiles(str(tmp_path)))

    return write_and_read


def test_complete_checkpoint(read):
    checkpoint = read()
    assert checkpoint == SparkCheckpoint("q", (4, 5, 6), (4, 5), {"spark.sql.shuffle.partitions": "2"})
    assert (checkpoint.last_planned, checkpoint.last_completed, checkpoint.is_new) == (6, 5, False)


def test_missing_checkpoint_is_new(tmp_path):
    checkpoint = read_checkpoint(DiskFiles(str(tmp_path)))
    assert checkpoint == SparkCheckpoint()
    assert (checkpoint.last_planned, checkpoint.last_completed, checkpoint.is_new) == (-1, -1, True)


@pytest.mark.parametrize(
    ("changes", "damage"),
    [
        ({"metadata": ""}, "metadata is empty"),
        ({"metadata": '{"id'}, "metadata is truncated"),
        ({"metadata": None}, "metadata is missing"),
        ({"offsets_5": None}, "offsets/5 is missing"),
        ({"offsets_6": ""}, "offsets/6 is empty"),
        ({"offsets_6": OFFSETS[:40]}, "offsets/6 is truncated"),
        ({"offsets_6": OFFSETS[:-1]}, "offsets/6 is truncated"),
        ({"commits_4": ""}, "commits/4 is empty"),
        ({"commits_5": None}, "commits/5 is missing"),
        ({"offsets_6": None, "offsets_5": None}, "offsets/5 is missing"),
    ],
)
def test_damaged_files_are_named(read, changes, damage):
    assert read(**changes).damage == (damage,)
