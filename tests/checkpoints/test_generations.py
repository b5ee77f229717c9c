"""Generations: the current one of a step, and the file that names it."""

from __future__ import annotations

import pytest

from headrace.checkpoints.checkpoint_files import DiskFiles
from headrace.checkpoints.generations import AcceptedTable, Generation, read_generation, write_generation
from headrace.errors import GuardError

TABLE = AcceptedTable("id", "truncated", 7, is_pending=True)


def test_a_step_without_a_reset_has_the_first_generation(tmp_path):
    assert read_generation(DiskFiles(str(tmp_path))) == Generation()


def test_a_generation_is_read_as_it_was_written(tmp_path):
    files = DiskFiles(str(tmp_path))
    generation = Generation().next({"landed": TABLE}, {"rows": {"startingVersion": "4"}})
    write_generation(files, generation)
    assert read_generation(files) == generation
    assert (generation.number, generation.previous, generation.pending_tables) == (2, 1, {"landed": TABLE})


def test_a_number_is_never_used_twice():
    second = Generation().next({}, {})
    first = second.undone({"landed": 9})
    assert (first.number, first.restored, first.previous) == (1, {"landed": 9}, 0)
    third = first.next({}, {})
    assert (third.number, third.previous) == (3, 1)


def test_reset_of_a_generation_without_a_batch_replaces_it():
    unused = Generation().next({"landed": TABLE}, {})
    third = unused.next({"landed": TABLE}, {}, has_batches=False)
    assert (third.number, third.previous) == (3, 1)
    truncated = unused.with_table("landed", TABLE.truncated())
    assert truncated.next({}, {}, has_batches=False).previous == 2
    assert Generation().next({}, {}, has_batches=False).previous == 1


@pytest.mark.parametrize("content", ["", "[]", '{"format": 2}', '{"format": 1, "number": 2}'])
def test_a_file_that_cannot_be_read_stops_the_start(tmp_path, content):
    (tmp_path / "generation.json").write_text(content)
    with pytest.raises(GuardError, match=r"generation\.json cannot be read"):
        read_generation(DiskFiles(str(tmp_path)))
