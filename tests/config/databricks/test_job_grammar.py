"""Check that the grammar of jobs is complete and matches the installed SDK."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from headrace.config.databricks.job_grammar import SCALARS, job_grammar
from headrace.config.locations import KeyLocations

REPOSITORY = Path(__file__).parents[3]


def test_generated_grammar_is_current() -> None:
    pytest.importorskip("databricks.sdk")
    script = REPOSITORY / "scripts" / "grammar" / "make.py"
    spec = importlib.util.spec_from_file_location("make_grammar", script)
    assert spec is not None and spec.loader is not None
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    assert make.FILE.read_text() == make.generate(), "run python scripts/grammar/make.py"


def test_all_kinds_are_defined() -> None:
    grammar = job_grammar()
    used = {kind.strip("[{]}!") for keys in grammar.kinds.values() if isinstance(keys, dict) for kind in keys.values()}
    assert used - {*SCALARS, "any"} <= set(grammar.kinds)
    assert [*grammar.check({"tasks": [{"task_key": "a"}]}, "JobSettings", KeyLocations("a.yml"), ())] == []
