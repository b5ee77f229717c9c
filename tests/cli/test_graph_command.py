"""Test `headrace graph`: text, Mermaid, SVG and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from headrace.cli import main
from headrace.config.load import load_bundle
from headrace.observe.graph_rendering import HEIGHT, WIDTH, build_graph

REPOSITORY = Path(__file__).parents[2]
WriteBundle = Callable[[Mapping[str, str | bytes | None]], Path]
Golden = Callable[[str, str], None]

SVG = "{http://www.w3.org/2000/svg}"
SINKS = """\
steps:
  land:
    layer: bronze
    reads: {rows: {source: ticks}}
    writes: [{table: landed, mode: replace}, {topic: alerts}, {console: true}]
  export: {layer: silver, reads: {rows: {table: landed, changes: true}}, writes: {folder: exports}}
  see: {layer: silver, reads: {rows: {table: landed, changes: true}}, writes: {memory: seen}}
"""
LOCATIONS = "topics: {alerts: {servers: 'a:1', topic: alerts}}\nfolders: {exports: out}\n"
LATER = "steps:\n  land: {layer: gold, reads: {rows: {table: landed, changes: true}}, writes: {table: later}}\n"


def _graph(*arguments: str, root: Path = REPOSITORY) -> str:
    result = CliRunner().invoke(main, ["graph", "-C", str(root), *arguments])
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


@pytest.mark.parametrize(
    ("case", "arguments"),
    [
        ("graph_text", ["orders"]),
        ("graph_mermaid", ["orders", "--format", "mermaid"]),
        ("graph_svg", ["orders", "--format", "svg"]),
    ],
)
def test_graph_of_the_orders_pipeline(case: str, arguments: list[str], golden: Golden) -> None:
    golden(f"cli/{case}", _graph(*arguments))


def test_graph_of_all_pipelines_with_every_kind_of_sink(write_bundle: WriteBundle, golden: Golden) -> None:
    root = write_bundle({})
    local = (root / "conf/local.yml").read_text() + LOCATIONS
    # Pipeline a reads what p writes, although a is drawn first.
    files = {"conf/pipelines/p.yml": SINKS, "conf/pipelines/a.yml": LATER, "conf/local.yml": local}
    root = write_bundle(files)
    golden("cli/graph_all", _graph(root=root))
    _assert_arrows_point_right(_graph("--format", "svg", root=root))
    assert _graph("p", "--format", "mermaid", root=root).count("-->") == 8


def test_svg_is_well_formed_and_boxes_do_not_overlap() -> None:
    picture = ElementTree.fromstring(_graph("--format", "svg"))
    boxes = [(int(box.attrib["x"]), int(box.attrib["y"])) for box in picture.iter(f"{SVG}rect")]
    graph = build_graph(load_bundle(REPOSITORY), "orders")
    assert len(boxes) == len(graph.nodes)
    assert len([path for path in picture.iter(f"{SVG}path") if "marker-end" in path.attrib]) == len(graph.arrows)
    for index, (x, y) in enumerate(boxes):
        assert 0 <= x <= int(picture.attrib["width"]) - WIDTH
        assert 0 <= y <= int(picture.attrib["height"]) - HEIGHT
        assert all(abs(x - other[0]) >= WIDTH or abs(y - other[1]) >= HEIGHT for other in boxes[:index])
    names = {text.text for text in picture.iter(f"{SVG}text")}
    assert {"bronze_orders", "silver_orders", "gold_revenue", "customers"} <= names


def test_arrows_point_to_the_right() -> None:
    _assert_arrows_point_right(_graph("--format", "svg"))


def _assert_arrows_point_right(svg: str) -> None:
    for path in ElementTree.fromstring(svg).iter(f"{SVG}path"):
        if "marker-end" in path.attrib:
            start, *_, end, _ = path.attrib["d"].split(" ")
            assert int(start[1:]) < int(end)


def test_json_has_the_key_of_both_ends_of_an_arrow() -> None:
    graph = json.loads(_graph("orders", "-o", "json"))
    keys = [node["key"] for node in graph["nodes"]]
    assert len(keys) == len(set(keys)) == 12
    assert {end for arrow in graph["arrows"] for end in (arrow["from"], arrow["to"])} == set(keys)
    static = {"from": "table_customers", "to": "step_orders_silver_orders", "label": "static"}
    assert static in graph["arrows"]


def test_output_file(tmp_path: Path) -> None:
    file = tmp_path / "orders.svg"
    assert _graph("--format", "svg", "--output", str(file)) == ""
    ElementTree.fromstring(file.read_text())
    result = CliRunner().invoke(main, ["graph", "-C", str(REPOSITORY), "--output", str(tmp_path / "no" / "where")])
    assert result.exit_code == 2
    assert "cannot write" in result.stderr


def test_graph_does_not_require_values() -> None:
    assert _graph("--env", "dev").startswith("orders\n")


def test_unknown_pipeline_is_an_error() -> None:
    result = CliRunner().invoke(main, ["graph", "order", "-C", str(REPOSITORY)])
    assert result.exit_code == 1
    assert result.stderr == "Error: there is no pipeline 'order'\n  fix: did you mean 'orders'?\n"
