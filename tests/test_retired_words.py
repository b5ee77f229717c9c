"""The check for retired words finds them in names and sentences, and nothing else."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

find = runpy.run_path(str(Path(__file__).parents[1] / "scripts" / "retired_words.py"))["find"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("is_told", ["told"]),
        ("the run goes on", ["goes on"]),
        ("class CrewMember", ["Crew"]),
        ("written by hand", ["by hand"]),
        ("Judging rows", ["Judging"]),
        ('KEY = "told"  # stored key', []),
        ("a teller, mending-free, judo, handled by handlers", ["mending"]),
    ],
)
def test_retired_words_are_found(text: str, words: list[str]) -> None:
    assert [word for _, word in find(text)] == words
