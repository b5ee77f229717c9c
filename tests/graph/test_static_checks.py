"""Functions, schemas and rules that steps name, checked by their source without an import."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from headrace.config.load import load_bundle
from headrace.config.models import Bundle
from headrace.errors import ConfigurationError
from headrace.graph.static_checks import check_functions, require_functions

REPOSITORY = Path(__file__).parents[2]
WriteBundle = Callable[[Mapping[str, str | bytes | None]], Path]
Golden = Callable[[str, str], None]

MODULE = '''\
"""Functions whose source is parsed: importing this module fails."""

raise SystemExit("this module must not be imported")


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

# Each case is the keys of one step.
MATCHING = {
    "by_name": "reads: {customers: {table: a, static: true}, orders: {table: b}}, "
    "transform: stream.steps:enrich, with: {keys: [x]}",
    "stream": "reads: {any_name: {table: a}}, transform: stream.steps:first, with: {keys: [x]}",
    "other_inputs": "reads: {keys_of: {table: a, static: true}, s: {table: b}}, "
    "transform: stream.steps:join, with: {keys: [x]}",
    "defaults": "reads: {orders: {table: a}}, transform: stream.steps:optional",
    "durations": "reads: {orders: {table: a}}, transform: stream.steps:optional, "
    "with: {window: 1 hour 30 minutes, slide: null}",
}
MISMATCHING = {
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


def _load(write_bundle: WriteBundle, steps: str, module: str = MODULE) -> Bundle:
    land = "  land: {layer: bronze, reads: {rows: {source: ticks}}, writes: [{table: a}, {table: b}]}\n"
    pipeline = "steps:\n" + land + steps
    files = {"conf/pipelines/p.yml": pipeline, "src/stream/__init__.py": "1 / 0\n", "src/stream/steps.py": module}
    return load_bundle(write_bundle(files))


def _step(keys: str) -> str:
    return f"  s: {{layer: bronze, {keys}, writes: {{table: s}}}}\n"


def _unchecked(bundle: Bundle) -> list[str]:
    """Return the messages about functions whose parameters cannot be read from the source."""
    results = check_functions(Path(bundle.root), bundle.located_steps())
    return [result for result in results if isinstance(result, str)]


@pytest.mark.parametrize("case", MATCHING)
def test_function_that_matches_its_step(case: str, write_bundle: WriteBundle) -> None:
    bundle = _load(write_bundle, _step(MATCHING[case]))
    require_functions(bundle)
    assert _unchecked(bundle) == []


@pytest.mark.parametrize("case", MISMATCHING)
def test_function_that_does_not_match_its_step_is_an_error(
    case: str, write_bundle: WriteBundle, golden: Golden
) -> None:
    with pytest.raises(ConfigurationError) as error:
        require_functions(_load(write_bundle, _step(MISMATCHING[case])))
    golden(f"graph/{case}", str(error.value))


@pytest.mark.parametrize("name", UNCHECKED)
def test_transform_that_is_not_an_undecorated_def_is_unchecked(name: str, write_bundle: WriteBundle) -> None:
    bundle = _load(write_bundle, _step(f"reads: {{rows: {{table: a}}}}, transform: stream.steps:{name}"))
    require_functions(bundle)
    (message,) = _unchecked(bundle)
    assert "unchecked" in message and f"stream.steps:{name}" in message
    assert message.startswith("conf/pipelines/p.yml:3")


def test_rule_that_is_not_an_undecorated_def_is_unchecked(write_bundle: WriteBundle) -> None:
    bundle = _load(write_bundle, _step('reads: {rows: {table: a}}, expect: [{rule: "stream.steps:assigned"}]'))
    (message,) = _unchecked(bundle)
    assert "rule 'stream.steps:assigned' is unchecked" in message


def test_directory_without_init_is_a_package(write_bundle: WriteBundle) -> None:
    root = write_bundle(
        {
            "conf/pipelines/p.yml": "steps:\n"
            + _step("reads: {rows: {source: ticks}}, transform: stream.deep.inside.steps:f, row_wise: true"),
            "src/stream/__init__.py": "",
            "src/stream/deep/inside/steps.py": "def f(rows): ...\n",
        }
    )
    bundle = load_bundle(root)
    require_functions(bundle)
    assert _unchecked(bundle) == []


@pytest.mark.parametrize("module", ["from elsewhere import *\n", "def __getattr__(name): ...\n"])
def test_function_of_a_module_that_may_define_more_names_is_unchecked(module: str, write_bundle: WriteBundle) -> None:
    keys = 'reads: {rows: {source: orders, schema: "stream.steps:ANY"}}, transform: stream.steps:any, row_wise: true'
    bundle = _load(write_bundle, _step(keys), module)
    require_functions(bundle)
    assert len(_unchecked(bundle)) == 1


def test_function_whose_name_is_bound_again_is_unchecked(write_bundle: WriteBundle) -> None:
    module = "def f(a): ...\nf = wrapped(f)\n"
    bundle = _load(write_bundle, _step("reads: {rows: {table: a}}, transform: stream.steps:f"), module)
    require_functions(bundle)
    assert len(_unchecked(bundle)) == 1


def test_module_with_a_syntax_error_is_an_error(write_bundle: WriteBundle, golden: Golden) -> None:
    bundle = _load(write_bundle, _step("reads: {rows: {table: a}}, transform: stream.steps:f"), "def f(:\n")
    with pytest.raises(ConfigurationError) as error:
        require_functions(bundle)
    golden("graph/not_python", str(error.value))


def test_function_of_a_built_in_module_is_unchecked(write_bundle: WriteBundle) -> None:
    bundle = _load(write_bundle, _step("reads: {rows: {table: a}}, transform: sys:exit"))
    require_functions(bundle)
    assert len(_unchecked(bundle)) == 1


def test_functions_of_the_repository_match_without_an_import() -> None:
    before = set(sys.modules)
    bundle = load_bundle(REPOSITORY)
    require_functions(bundle)
    assert _unchecked(bundle) == []
    assert not {name for name in set(sys.modules) - before if name.split(".")[0] in ("pyspark", "headrace_shop")}
