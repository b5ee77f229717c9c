"""The order of steps, and which steps read what others write."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from headrace.config.load import load_bundle
from headrace.config.models import Bundle
from headrace.errors import ConfigurationError
from headrace.graph.order import pipeline_steps, upstream_steps

REPOSITORY = Path(__file__).parents[2]
WriteBundle = Callable[[Mapping[str, str | bytes | None]], Path]


def _load(write_bundle: WriteBundle, steps: str) -> Bundle:
    land = "  land: {layer: bronze, reads: {rows: {source: ticks}}, writes: [{table: a}, {table: b}]}\n"
    return load_bundle(write_bundle({"conf/pipelines/p.yml": "steps:\n" + land + steps}))


def test_steps_come_after_the_steps_whose_tables_they_read() -> None:
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
def test_steps_of_any_graph_otherwise_keep_the_order_of_the_file(seed: int, write_bundle: WriteBundle) -> None:
    rng = random.Random(seed)
    names = [f"s{number}" for number in range(12)]
    rng.shuffle(names)  # a step may read the tables of any step before it in this order
    reads = {name: rng.sample(names[:index], k=min(index, rng.randint(0, 2))) for index, name in enumerate(names)}
    in_file = sorted(names)
    steps = ""
    for name in in_file:
        inputs = ", ".join(f"{other}: {{table: {other}}}" for other in reads[name]) or "rows: {source: ticks}"
        steps += f"  {name}: {{layer: gold, reads: {{{inputs}}}, transform: a:b, writes: {{table: {name}}}}}\n"
    ordered = [step.name for step in pipeline_steps(_load(write_bundle, steps), "p")][1:]
    assert sorted(ordered) == in_file
    for index, name in enumerate(ordered):
        assert set(reads[name]) <= set(ordered[:index])
        ready = [
            other for other in in_file if set(reads[other]) <= set(ordered[:index]) and other not in ordered[:index]
        ]
        assert name == ready[0]


def test_tables_of_other_pipelines_do_not_affect_the_order(write_bundle: WriteBundle) -> None:
    step = "steps:\n  {0}: {{layer: gold, reads: {{rows: {{table: {1}}}}}, writes: {{table: {0}}}}}\n"
    bundle = load_bundle(write_bundle({"conf/pipelines/q.yml": step.format("later", "landed")}))
    assert [step.name for step in pipeline_steps(bundle, "q")] == ["later"]
    assert upstream_steps(bundle.pipelines["q"].steps["later"], bundle.pipelines["q"].steps.values()) == ()


def test_quarantine_is_read_after_the_step_that_writes_it(write_bundle: WriteBundle) -> None:
    steps = """\
  reader: {layer: silver, reads: {rows: {table: c_quarantine}}, writes: {table: copy}}
  writer: {layer: bronze, reads: {rows: {source: orders, schema: a INT}}, writes: {table: c}}
"""
    assert [step.name for step in pipeline_steps(_load(write_bundle, steps), "p")] == ["land", "writer", "reader"]


def test_unknown_pipeline_is_an_error() -> None:
    with pytest.raises(ConfigurationError) as error:
        pipeline_steps(load_bundle(REPOSITORY), "order")
    assert str(error.value) == "Error: there is no pipeline 'order'\n  fix: did you mean 'orders'?"
