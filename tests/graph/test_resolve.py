"""Import of the objects that steps name, and binding of inputs and settings to parameters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace.config.models import Step
from headrace.errors import ConfigurationError
from headrace.graph.resolve import bind_arguments, resolve

Golden = Callable[[str, str], None]


def _step(**keys: Any) -> Step:
    reads = keys.pop("reads", {"orders": {"table": "a"}})
    return Step.model_validate({"name": "s", "layer": "silver", "writes": [{"table": "t"}], "reads": reads, **keys})


def enrich(orders: str, customers: str, *, keys: list[str], how: str = "left") -> None: ...
def first(rows: str, /, *, keys: list[str]) -> None: ...
def join(rows: str, /, *, keys: list[str], **dimensions: str) -> None: ...
def two(left: str, right: str, /) -> None: ...


def test_inputs_are_bound_by_name() -> None:
    reads = {"customers": {"table": "a", "static": True}, "orders": {"table": "b"}}
    step = _step(reads=reads, transform="a:b", **{"with": {"keys": ["x"]}})
    bound = bind_arguments(step, enrich, {"customers": "C", "orders": "O"})
    assert bound == ((), {"customers": "C", "orders": "O", "keys": ["x"]})


def test_the_stream_is_bound_by_position_and_other_inputs_by_name() -> None:
    reads = {"rows": {"table": "a", "static": True}, "orders": {"table": "b"}}
    step = _step(reads=reads, transform="a:b", **{"with": {"keys": ["x"]}})
    assert bind_arguments(step, join, {"rows": "R", "orders": "O"}) == (("O",), {"rows": "R", "keys": ["x"]})
    only_stream = _step(transform="a:b", **{"with": {"keys": ["x"]}})
    assert bind_arguments(only_stream, first, {"orders": "O"}) == (("O",), {"keys": ["x"]})


def test_step_that_does_not_match_its_function_is_an_error(golden: Golden) -> None:
    messages = []
    for function, keys in ((enrich, {"kyes": 1}), (first, {}), (two, {}), ("text", {})):
        with pytest.raises(ConfigurationError) as error:
            bind_arguments(_step(transform="a:b", **{"with": keys}), function, {"orders": "O"})  # type: ignore[arg-type]
        messages.append(str(error.value))
    golden("graph/bind", "\n".join(messages))


def test_import_path_is_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "module_to_resolve.py").write_text("ORDER = 5\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert resolve("module_to_resolve:ORDER") == 5
    assert resolve("headrace.graph.resolve:resolve") is resolve


def test_import_path_that_cannot_be_resolved_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "broken_syntax.py").write_text("def f(:\n")
    (tmp_path / "broken_import.py").write_text("import not_installed_at_all\n")
    (tmp_path / "broken_name.py").write_text("import sys\nsys.missing_attribute\n")
    (tmp_path / "broken_value.py").write_text("raise ValueError('no')\n")
    messages = []
    for path in (
        "missing_module:f",
        "headrace.graf:f",
        "headrace.graph.resolve:f",
        "broken_syntax:f",
        "broken_import:f",
        "broken_name:f",
        "broken_value:f",
    ):
        with pytest.raises(ConfigurationError) as error:
            resolve(path)
        messages.append(str(error.value))
    golden("graph/resolve", "\n".join(messages))
