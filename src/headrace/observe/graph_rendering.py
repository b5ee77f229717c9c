"""Build the graph of pipelines, and render it as text, JSON, Mermaid or SVG."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from headrace.config.expectation_scope import has_quarantine
from headrace.config.models import Bundle, Step
from headrace.graph.order import pipeline_steps

Kind = str  # "source", "step", or a kind of sink such as "table"

# Sizes in pixels: of a box, of the gaps between boxes, and of the margin around the picture.
WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 190, 44, 70, 24, 20
MAX_NAME_LENGTH = 26  # characters; longer names do not fit into a box
LINE_COLOR, TEXT_COLOR = "#6b7280", "#111827"
FILL_COLORS = {"source": "#f3f4f6", "bronze": "#f6e0c8", "silver": "#e5e7eb", "gold": "#fdf0b8"}


@dataclass(frozen=True)
class Node:
    """A box of the graph. Only steps have a layer and a pipeline."""

    kind: Kind
    name: str
    layer: str = ""
    pipeline: str = ""

    @property
    def key(self) -> str:
        """The identifier of the node in the graph."""
        return "_".join(filter(None, (self.kind, self.pipeline, self.name)))


@dataclass(frozen=True)
class Arrow:
    """A flow of rows from one node to another."""

    start: Node
    end: Node
    label: str = ""  # how the rows are read or written: static, changes, quarantined, or a mode other than append


@dataclass(frozen=True)
class PipelineGraph:
    """The graph of one or several pipelines. `pipelines` are their names."""

    pipelines: tuple[str, ...]
    nodes: tuple[Node, ...]
    arrows: tuple[Arrow, ...]


def build_graph(bundle: Bundle, *pipelines: str) -> PipelineGraph:
    """Return the graph of the steps of these pipelines, with everything that they read and write."""
    arrows: list[Arrow] = []
    for pipeline in pipelines:
        for step in pipeline_steps(bundle, pipeline):
            node = Node("step", step.name, step.layer, pipeline)
            arrows += [*_read_arrows(step, node), *_write_arrows(step, node, bundle)]
    nodes = dict.fromkeys(node for arrow in arrows for node in (arrow.start, arrow.end))
    return PipelineGraph(pipelines, tuple(nodes), tuple(arrows))


def _read_arrows(step: Step, node: Node) -> Iterable[Arrow]:
    for read in step.reads.values():
        start = Node("source", read.source) if read.source else Node("table", str(read.table))
        label = "static" if read.static else "changes" if read.changes else ""
        yield Arrow(start, node, label)


def _write_arrows(step: Step, node: Node, bundle: Bundle) -> Iterable[Arrow]:
    for sink in step.writes:
        # A sink has its name in a field with the name of its kind, as in `table: orders`. The console has no name.
        name = "console" if sink.kind == "console" else str(getattr(sink, sink.kind))
        label = "" if sink.mode == "append" else sink.mode
        yield Arrow(node, Node(sink.kind, name), label)
    if step.tables_written and has_quarantine(step, bundle.environment):
        yield Arrow(node, Node("table", f"{step.tables_written[0]}_quarantine"), "quarantined")


def as_text(graph: PipelineGraph) -> str:
    """Return an indented list of the pipelines, their steps, and what each step reads and writes."""
    lines = []
    for pipeline in graph.pipelines:
        lines.append(pipeline)
        for step in (node for node in graph.nodes if node.pipeline == pipeline):
            lines.append(f"  {step.name} ({step.layer})")
            lines += [f"    reads  {_describe(arrow.start, arrow)}" for arrow in graph.arrows if arrow.end == step]
            lines += [f"    writes {_describe(arrow.end, arrow)}" for arrow in graph.arrows if arrow.start == step]
    return "\n".join(lines)


def _describe(node: Node, arrow: Arrow) -> str:
    name = node.kind if node.kind == "console" else f"{node.kind} {node.name}"
    return name + (f" ({arrow.label})" if arrow.label else "")


def as_json(graph: PipelineGraph) -> str:
    """Return the nodes and arrows as JSON. Empty fields of nodes are left out."""
    nodes = [{"key": node.key, **{key: value for key, value in vars(node).items() if value}} for node in graph.nodes]
    arrows = [{"from": arrow.start.key, "to": arrow.end.key, "label": arrow.label} for arrow in graph.arrows]
    return json.dumps({"nodes": nodes, "arrows": arrows}, indent=2)


def as_mermaid(graph: PipelineGraph) -> str:
    """Return a Mermaid flowchart."""
    brackets = {"source": ("([", "])"), "step": ("[", "]"), "table": ("[(", ")]")}
    lines = ["flowchart LR"]
    for node in graph.nodes:
        opening, closing = brackets.get(node.kind, ("[/", "/]"))  # Mermaid draws a shape for each kind of brackets
        lines.append(f'  {node.key}{opening}"{node.name}"{closing}')
    for arrow in graph.arrows:
        label = f"|{arrow.label}|" if arrow.label else ""
        lines.append(f"  {arrow.start.key} -->{label} {arrow.end.key}")
    for layer in ("bronze", "silver", "gold"):
        keys = [node.key for node in graph.nodes if node.layer == layer]
        if keys:
            lines += [
                f"  classDef {layer} fill:{FILL_COLORS[layer]},stroke:{LINE_COLOR}",
                f"  class {','.join(keys)} {layer}",
            ]
    return "\n".join(lines)


def as_svg(graph: PipelineGraph) -> str:
    """Return an SVG picture. Arrows point to the right: each node is to the right of the nodes that send rows to it."""
    positions = _positions(graph)
    width = max((x for x, _ in positions.values()), default=0) + WIDTH + MARGIN
    height = max((y for _, y in positions.values()), default=0) + HEIGHT + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f"<title>{escape(', '.join(graph.pipelines))}</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        f'orient="auto"><path d="M0 0 8 4 0 8z" fill="{LINE_COLOR}"/></marker></defs>',
        *(_curve(positions[arrow.start], positions[arrow.end], arrow.label) for arrow in graph.arrows),
        *(_box(node, positions[node]) for node in graph.nodes),
        "</svg>",
    ]
    return "\n".join(parts)


def _positions(graph: PipelineGraph) -> dict[Node, tuple[int, int]]:
    """Return the upper left corner of each node's box."""
    columns = dict.fromkeys(graph.nodes, 0)
    # Move each node to the right of its predecessors. A pass settles at least one more node of each path, so one pass
    # for each node of the graph is enough.
    for _ in graph.nodes:
        for arrow in graph.arrows:
            columns[arrow.end] = max(columns[arrow.end], columns[arrow.start] + 1)
    nodes_in_column: Counter[int] = Counter()
    positions = {}
    for node, column in columns.items():
        positions[node] = (MARGIN + column * (WIDTH + GAP_X), MARGIN + nodes_in_column[column] * (HEIGHT + GAP_Y))
        nodes_in_column[column] += 1
    return positions


def _curve(start_corner: tuple[int, int], end_corner: tuple[int, int], label: str) -> str:
    """Return a curve from the right side of one box to the left side of another, given their upper left corners."""
    x1, y1 = start_corner[0] + WIDTH, start_corner[1] + HEIGHT // 2
    x2, y2 = end_corner[0], end_corner[1] + HEIGHT // 2
    middle = (x1 + x2) // 2
    path = f"M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}"
    line = f'<path d="{path}" fill="none" stroke="{LINE_COLOR}" marker-end="url(#tip)"/>'
    label_y = (y1 + y2) // 2 - 4  # slightly above the curve
    return line + (_text(middle, label_y, label, LINE_COLOR) if label else "")


def _box(node: Node, corner: tuple[int, int]) -> str:
    """Return a box with two lines of text: the name of the node, and its layer or kind."""
    x, y = corner
    radius = HEIGHT // 2 if node.kind == "source" else 4
    name = node.name if len(node.name) <= MAX_NAME_LENGTH else f"{node.name[: MAX_NAME_LENGTH - 1]}…"
    return (
        f"<g><title>{escape(node.name)}</title>"
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="{radius}" '
        f'fill="{FILL_COLORS.get(node.layer or node.kind, "#ffffff")}" stroke="{LINE_COLOR}"/>'
        f"{_text(x + WIDTH // 2, y + 19, name)}"
        f"{_text(x + WIDTH // 2, y + 34, node.layer or node.kind, LINE_COLOR)}</g>"
    )


def _text(x: int, y: int, text: str, color: str = TEXT_COLOR) -> str:
    """Return a text that is centered at x and has its baseline at y."""
    return f'<text x="{x}" y="{y}" text-anchor="middle" fill="{color}">{escape(text)}</text>'
