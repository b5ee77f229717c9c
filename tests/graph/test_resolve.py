"""Order, and functions that fit their steps: by their source alone, and by themselves."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from headrace.config.load import load_bundle
from headrace.config.models import Bundle, Step
from headrace.errors import ConfigurationError
from headrace.graph.order import pipeline_steps, upstream_steps
from headrace.graph.resolve import bind_arguments, resolve
from headrace.graph.static_checks import check_functions, require_functions

REPOSITORY = Path(__file__).parents[2]
WriteBundle = Callable[[Mapping[str, str | bytes | None]], Path]
Golden = Callable[[str, str], None]

MODULE = '''\
"""Transforms that are only ever read: importing this module fails."""

raise SystemExit("nobody may import this")


def enrich(orders, customers, *, keys, how="left"):
    return orders


def first(rows, /, *, keys):
    return rows


def join(rows, /, *, keys, **dimensions):
    return rows


def optional(orders, extra=None, *, window: "Duration" = "1 minute", slide: Duration | None = None):
    return orders


def two_streams(left, right, /):
    return left


def positive():
    return True


def larger(limit):
    return limit


@first
def decorated(rows):
    return rows


assigned = lambda rows: rows
if True:
    def nested(rows):
        return rows

from elsewhere import borrowed
ORDER, (CUSTOMER, *REST) = None, (None, None)
class Table: ...
'''


def _step(**keys: Any) -> Step:
    reads = keys.pop("reads", {"orders": {"table": "a"}})
    return Step.model_validate({"name": "s", "layer": "silver", "writes": [{"table": "t"}], "reads": reads, **keys})


def _bundle(write_bundle: WriteBundle, steps: str, module: str = MODULE) -> Bundle:
    land = "  land: {layer: bronze, reads: {rows: {source: ticks}}, writes: [{table: a}, {table: b}]}\n"
    pipeline = "steps:\n" + land + steps
    files = {"conf/pipelines/p.yml": pipeline, "src/stream/__init__.py": "1 / 0\n", "src/stream/steps.py": module}
    return load_bundle(write_bundle(files))


# ── Order ─────────────────────────────────────────────────────────────────────────────────────────────


def test_steps_come_after_what_they_read() -> None:
    bundle = load_bundle(REPOSITORY)
    assert [step.name for step in pipeline_steps(bundle, "orders")] == [
        "customers",
        "bronze_orders",
        "silver_orders",
        "gold_revenue",
    ]
    steps = bundle.pipelines["orders"].steps
    assert upstream_steps(steps["silver_orders"], steps.values()) == ("customers", "bronze_orders")


@pytest.mark.parametrize("seed", range(20))
def test_any_graph_is_ordered_and_otherwise_left_as_it_is(seed: int, write_bundle: WriteBundle) -> None:
    chance = random.Random(seed)
    names = [f"s{number}" for number in range(12)]
    chance.shuffle(names)  # a step may read any step that stands before it in this order
    reads = {name: chance.sample(names[:at], k=min(at, chance.randint(0, 2))) for at, name in enumerate(names)}
    written = sorted(names)
    steps = ""
    for name in written:
        inputs = ", ".join(f"{other}: {{table: {other}}}" for other in reads[name]) or "rows: {source: ticks}"
        steps += f"  {name}: {{layer: gold, reads: {{{inputs}}}, transform: a:b, writes: {{table: {name}}}}}\n"
    ordered = [step.name for step in pipeline_steps(_bundle(write_bundle, steps), "p")][1:]
    assert sorted(ordered) == written
    for at, name in enumerate(ordered):
        assert set(reads[name]) <= set(ordered[:at])
        ready = [other for other in written if set(reads[other]) <= set(ordered[:at]) and other not in ordered[:at]]
        assert name == ready[0]


def test_tables_of_other_pipelines_are_outside(write_bundle: WriteBundle) -> None:
    step = "steps:\n  {0}: {{layer: gold, reads: {{rows: {{table: {1}}}}}, writes: {{table: {0}}}}}\n"
    bundle = load_bundle(write_bundle({"conf/pipelines/q.yml": step.format("later", "landed")}))
    assert [step.name for step in pipeline_steps(bundle, "q")] == ["later"]
    assert upstream_steps(bundle.pipelines["q"].steps["later"], bundle.pipelines["q"].steps.values()) == ()


def test_a_quarantine_is_read_after_the_step_that_fills_it(write_bundle: WriteBundle) -> None:
    steps = """\
  refused: {layer: silver, reads: {rows: {table: c_quarantine}}, writes: {table: refused}}
  judges: {layer: bronze, reads: {rows: {source: orders, schema: a INT}}, writes: {table: c}}
"""
    assert [step.name for step in pipeline_steps(_bundle(write_bundle, steps), "p")] == ["land", "judges", "refused"]


def test_an_unknown_pipeline() -> None:
    with pytest.raises(ConfigurationError) as caught:
        pipeline_steps(load_bundle(REPOSITORY), "order")
    assert str(caught.value) == "Error: there is no pipeline 'order'\n  fix: did you mean 'orders'?"


# ── By source ─────────────────────────────────────────────────────────────────────────────────────────

FITS = {
    "by_name": "reads: {customers: {table: a, static: true}, orders: {table: b}}, "
    "transform: stream.steps:enrich, with: {keys: [x]}",
    "the_stream": "reads: {whatever: {table: a}}, transform: stream.steps:first, with: {keys: [x]}",
    "the_others": "reads: {keys_of: {table: a, static: true}, s: {table: b}}, "
    "transform: stream.steps:join, with: {keys: [x]}",
    "defaults": "reads: {orders: {table: a}}, transform: stream.steps:optional",
    "durations": "reads: {orders: {table: a}}, transform: stream.steps:optional, "
    "with: {window: 1 hour 30 minutes, slide: null}",
}
BAD = {
    "no_module": "reads: {rows: {table: a}}, transform: stream.step:first",
    "no_package": "reads: {rows: {table: a}}, transform: streem.steps:first",
    "no_function": "reads: {rows: {table: a}}, transform: stream.steps:frist",
    "inputs": "reads: {order: {table: a}, keys: {table: b}}, transform: stream.steps:enrich, with: {keys: [x]}",
    "settings": "reads: {orders: {table: a}, customers: {table: b}}, "
    "transform: stream.steps:enrich, with: {kyes: [x], orders: 1}",
    "no_duration": "reads: {orders: {table: a}}, transform: stream.steps:optional, with: {window: 1 minut, slide: 5}",
    "built_in": "reads: {rows: {table: a}}, transform: headrace.transforms.gold:aggregate_windows, "
    "with: {time: at, aggregates: {n: {count: at}}, gap: soon}",
    "several_streams": "reads: {orders: {table: a}, customers: {table: b}}, "
    "transform: stream.steps:join, with: {keys: [x]}",
    "too_many_inputs": "reads: {orders: {table: a}, more: {table: b, static: true}}, "
    "transform: stream.steps:first, with: {keys: [x]}",
    "two_before_the_slash": "reads: {orders: {table: a}}, transform: stream.steps:two_streams",
    "no_rule": 'reads: {rows: {table: a}}, expect: [{rule: "stream.steps:positiv"}, '
    '{rule: "stream.steps:larger"}, {rule: "stream.steps:positive"}]',
    "no_schema": 'reads: {rows: {source: orders, schema: "stream.steps:ORDERS"}}',
}
UNCHECKED = ("decorated", "assigned", "nested", "borrowed", "Table")


def unchecked(bundle: Bundle) -> list[str]:
    """The functions whose source does not show what they take, each as a sentence with its place."""
    return [said for said in check_functions(Path(bundle.root), bundle.located_steps()) if isinstance(said, str)]


def _written(keys: str) -> str:
    return f"  s: {{layer: bronze, {keys}, writes: {{table: s}}}}\n"


@pytest.mark.parametrize("case", FITS)
def test_a_function_that_fits(case: str, write_bundle: WriteBundle) -> None:
    bundle = _bundle(write_bundle, _written(FITS[case]))
    require_functions(bundle)
    assert unchecked(bundle) == []


@pytest.mark.parametrize("case", BAD)
def test_a_function_that_does_not_fit(case: str, write_bundle: WriteBundle, golden: Golden) -> None:
    with pytest.raises(ConfigurationError) as refused:
        require_functions(_bundle(write_bundle, _written(BAD[case])))
    golden(f"graph/{case}", str(refused.value))


@pytest.mark.parametrize("name", UNCHECKED)
def test_what_is_not_a_plain_def_is_said_to_be_unchecked(name: str, write_bundle: WriteBundle) -> None:
    bundle = _bundle(write_bundle, _written(f"reads: {{rows: {{table: a}}}}, transform: stream.steps:{name}"))
    require_functions(bundle)
    (note,) = unchecked(bundle)
    assert "unchecked" in note and f"stream.steps:{name}" in note
    assert note.startswith("conf/pipelines/p.yml:3")


def test_a_rule_that_is_not_a_plain_def_is_said_to_be_unchecked(write_bundle: WriteBundle) -> None:
    bundle = _bundle(write_bundle, _written('reads: {rows: {table: a}}, expect: [{rule: "stream.steps:assigned"}]'))
    (note,) = unchecked(bundle)
    assert "rule 'stream.steps:assigned' is unchecked" in note


def test_a_directory_without_an_init_is_a_package_too(write_bundle: WriteBundle) -> None:
    root = write_bundle(
        {
            "conf/pipelines/p.yml": "steps:\n"
            + _written("reads: {rows: {source: ticks}}, transform: stream.deep.inside.steps:f, row_wise: true"),
            "src/stream/__init__.py": "",
            "src/stream/deep/inside/steps.py": "def f(rows): ...\n",
        }
    )
    bundle = load_bundle(root)
    require_functions(bundle)
    assert unchecked(bundle) == []


@pytest.mark.parametrize("module", ["from elsewhere import *\n", "def __getattr__(name): ...\n"])
def test_a_module_that_makes_names_is_unchecked(module: str, write_bundle: WriteBundle) -> None:
    keys = 'reads: {rows: {source: orders, schema: "stream.steps:ANY"}}, transform: stream.steps:any, row_wise: true'
    bundle = _bundle(write_bundle, _written(keys), module)
    require_functions(bundle)
    assert len(unchecked(bundle)) == 1


def test_a_name_bound_again_is_unchecked(write_bundle: WriteBundle) -> None:
    module = "def f(a): ...\nf = wrapped(f)\n"
    bundle = _bundle(write_bundle, _written("reads: {rows: {table: a}}, transform: stream.steps:f"), module)
    require_functions(bundle)
    assert len(unchecked(bundle)) == 1


def test_a_module_that_is_not_python(write_bundle: WriteBundle, golden: Golden) -> None:
    bundle = _bundle(write_bundle, _written("reads: {rows: {table: a}}, transform: stream.steps:f"), "def f(:\n")
    with pytest.raises(ConfigurationError) as refused:
        require_functions(bundle)
    golden("graph/not_python", str(refused.value))


def test_a_module_that_python_has_built_in_is_unchecked(write_bundle: WriteBundle) -> None:
    bundle = _bundle(write_bundle, _written("reads: {rows: {table: a}}, transform: sys:exit"))
    require_functions(bundle)
    assert len(unchecked(bundle)) == 1


def test_the_repository_fits_without_an_import() -> None:
    before = set(sys.modules)
    bundle = load_bundle(REPOSITORY)
    require_functions(bundle)
    assert unchecked(bundle) == []
    assert not {name for name in set(sys.modules) - before if name.split(".")[0] in ("pyspark", "headrace_shop")}


# ── By the function itself ────────────────────────────────────────────────────────────────────────────


def enrich(orders: str, customers: str, *, keys: list[str], how: str = "left") -> None: ...
def first(rows: str, /, *, keys: list[str]) -> None: ...
def join(rows: str, /, *, keys: list[str], **dimensions: str) -> None: ...
def two(left: str, right: str, /) -> None: ...


def test_inputs_are_bound_by_name() -> None:
    reads = {"customers": {"table": "a", "static": True}, "orders": {"table": "b"}}
    step = _step(reads=reads, transform="a:b", **{"with": {"keys": ["x"]}})
    bound = bind_arguments(step, enrich, {"customers": "C", "orders": "O"})
    assert bound == ((), {"customers": "C", "orders": "O", "keys": ["x"]})


def test_the_one_stream_is_bound_by_place_and_the_others_by_name() -> None:
    reads = {"rows": {"table": "a", "static": True}, "orders": {"table": "b"}}
    step = _step(reads=reads, transform="a:b", **{"with": {"keys": ["x"]}})
    assert bind_arguments(step, join, {"rows": "R", "orders": "O"}) == (("O",), {"rows": "R", "keys": ["x"]})
    alone = _step(transform="a:b", **{"with": {"keys": ["x"]}})
    assert bind_arguments(alone, first, {"orders": "O"}) == (("O",), {"keys": ["x"]})


def test_what_does_not_fit_is_refused_before_the_call(golden: Golden) -> None:
    said = []
    for function, keys in ((enrich, {"kyes": 1}), (first, {}), (two, {}), ("text", {})):
        with pytest.raises(ConfigurationError) as caught:
            bind_arguments(_step(transform="a:b", **{"with": keys}), function, {"orders": "O"})  # type: ignore[arg-type]
        said.append(str(caught.value))
    golden("graph/bind", "\n".join(said))


def test_what_a_path_names_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "resolved_here.py").write_text("ORDER = 5\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert resolve("resolved_here:ORDER") == 5
    assert resolve("headrace.graph.resolve:resolve") is resolve


def test_what_cannot_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "broken_syntax.py").write_text("def f(:\n")
    (tmp_path / "broken_import.py").write_text("import not_installed_at_all\n")
    (tmp_path / "broken_name.py").write_text("import sys\nsys.nothing_of_this_name\n")
    (tmp_path / "broken_value.py").write_text("raise ValueError('no')\n")
    said = []
    for path in (
        "not_there:f",
        "headrace.graf:f",
        "headrace.graph.resolve:f",
        "broken_syntax:f",
        "broken_import:f",
        "broken_name:f",
        "broken_value:f",
    ):
        with pytest.raises(ConfigurationError) as caught:
            resolve(path)
        said.append(str(caught.value))
    golden("graph/resolve", "\n".join(said))
