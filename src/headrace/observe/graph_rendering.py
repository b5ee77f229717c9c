"""Pipelines as a picture: nodes and arrows, then text, Mermaid or SVG."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from headrace.config.expectation_scope import has_quarantine
from headrace.config.models import Bundle, Step
from headrace.graph.order import pipeline_steps

Kind = str  # source, step, or a kind of sink

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 190, 44, 70, 24, 20
INK = "#6b7280"
FILLS = {"source": "#f3f4f6", "bronze": "#f6e0c8", "silver": "#e5e7eb", "gold": "#fdf0b8"}


@dataclass(frozen=True)
class Node:
    """One box; only steps have a layer and a pipeline."""

    kind: Kind
    name: str
    layer: str = ""
    pipeline: str = ""

    @property
    def key(self) -> str:
        """A word that no other node has."""
        return "_".join(filter(None, (self.kind, self.pipeline, self.name)))


@dataclass(frozen=True)
class Arrow:
    """Rows go from one node to another."""

    start: Node
    end: Node
    label: str = ""


@dataclass(frozen=True)
class PipelineGraph:
    """The graph of some pipelines."""

    pipelines: tuple[str, ...]
    nodes: tuple[Node, ...]
    arrows: tuple[Arrow, ...]


def build_graph(bundle: Bundle, *pipelines: str) -> PipelineGraph:
    """The steps of the pipelines with all they read and write."""
    arrows: list[Arrow] = []
    for pipeline in pipelines:
        for step in pipeline_steps(bundle, pipeline):
            node = Node("step", step.name, step.layer, pipeline)
            arrows += [*_reads(step, node), *_writes(step, node, bundle)]
    nodes = dict.fromkeys(node for arrow in arrows for node in (arrow.start, arrow.end))
    return PipelineGraph(pipelines, tuple(nodes), tuple(arrows))


def _reads(step: Step, node: Node) -> Iterable[Arrow]:
    for read in step.reads.values():
        start = Node("source", read.source) if read.source else Node("table", str(read.table))
        yield Arrow(start, node, "static" if read.static else "changes" if read.changes else "")


def _writes(step: Step, node: Node, bundle: Bundle) -> Iterable[Arrow]:
    for sink in step.writes:
        kind = sink.kind
        end = Node(kind, "console" if kind == "console" else str(getattr(sink, kind)))
        yield Arrow(node, end, "" if sink.mode == "append" else sink.mode)
    if step.tables_written and has_quarantine(step, bundle.environment):
        yield Arrow(node, Node("table", f"{step.tables_written[0]}_quarantine"), "refused")


def as_text(drawing: PipelineGraph) -> str:
    """A heading for each pipeline, and a paragraph for each of its steps."""
    lines = []
    for pipeline in drawing.pipelines:
        lines.append(pipeline)
        for step in (node for node in drawing.nodes if node.pipeline == pipeline):
            lines.append(f"  {step.name} ({step.layer})")
            lines += [f"    reads  {_told(arrow.start, arrow)}" for arrow in drawing.arrows if arrow.end == step]
            lines += [f"    writes {_told(arrow.end, arrow)}" for arrow in drawing.arrows if arrow.start == step]
    return "\n".join(lines)


def _told(node: Node, arrow: Arrow) -> str:
    named = node.kind if node.kind == "console" else f"{node.kind} {node.name}"
    return named + (f" ({arrow.label})" if arrow.label else "")


def as_json(drawing: PipelineGraph) -> str:
    """The nodes and arrows for programs."""
    nodes = [{"key": node.key, **{key: value for key, value in vars(node).items() if value}} for node in drawing.nodes]
    arrows = [{"from": arrow.start.key, "to": arrow.end.key, "label": arrow.label} for arrow in drawing.arrows]
    return json.dumps({"nodes": nodes, "arrows": arrows}, indent=2)


def as_mermaid(drawing: PipelineGraph) -> str:
    """A flowchart in Mermaid's words."""
    shapes = {"source": ("([", "])"), "step": ("[", "]"), "table": ("[(", ")]")}
    lines = ["flowchart LR"]
    for node in drawing.nodes:
        left, right = shapes.get(node.kind, ("[/", "/]"))
        lines.append(f'  {node.key}{left}"{node.name}"{right}')
    for arrow in drawing.arrows:
        label = f"|{arrow.label}|" if arrow.label else ""
        lines.append(f"  {arrow.start.key} -->{label} {arrow.end.key}")
    for layer in ("bronze", "silver", "gold"):
        keys = [node.key for node in drawing.nodes if node.layer == layer]
        if keys:
            lines += [
                f"  classDef {layer} fill:{FILLS[layer]},stroke:{INK}",
                f"  class {','.join(keys)} {layer}",
            ]
    return "\n".join(lines)


def as_svg(drawing: PipelineGraph) -> str:
    """Columns from left to right: each node one column after what it gets rows from."""
    place = _places(drawing)
    width = max((x for x, _ in place.values()), default=0) + WIDTH + MARGIN
    height = max((y for _, y in place.values()), default=0) + HEIGHT + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f"<title>{escape(', '.join(drawing.pipelines))}</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        f'orient="auto"><path d="M0 0 8 4 0 8z" fill="{INK}"/></marker></defs>',
        *(_curve(place[arrow.start], place[arrow.end], arrow.label) for arrow in drawing.arrows),
        *(_box(node, place[node]) for node in drawing.nodes),
        "</svg>",
    ]
    return "\n".join(parts)


def _places(drawing: PipelineGraph) -> dict[Node, tuple[int, int]]:
    column = dict.fromkeys(drawing.nodes, 0)
    for _ in drawing.nodes:  # no way through the graph is longer than it has nodes
        for arrow in drawing.arrows:
            column[arrow.end] = max(column[arrow.end], column[arrow.start] + 1)
    filled: Counter[int] = Counter()
    place = {}
    for node, at in column.items():
        place[node] = (MARGIN + at * (WIDTH + GAP_X), MARGIN + filled[at] * (HEIGHT + GAP_Y))
        filled[at] += 1
    return place


def _curve(start: tuple[int, int], end: tuple[int, int], label: str) -> str:
    x1, y1, x2, y2 = start[0] + WIDTH, start[1] + HEIGHT // 2, end[0], end[1] + HEIGHT // 2
    middle = (x1 + x2) // 2
    path = f"M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}"
    line = f'<path d="{path}" fill="none" stroke="{INK}" marker-end="url(#tip)"/>'
    return line + (_words(middle, (y1 + y2) // 2 - 4, label, INK) if label else "")


def _box(node: Node, place: tuple[int, int]) -> str:
    x, y = place
    corner = HEIGHT // 2 if node.kind == "source" else 4
    name = node.name if len(node.name) <= 26 else f"{node.name[:25]}…"
    return (
        f"<g><title>{escape(node.name)}</title>"
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="{corner}" '
        f'fill="{FILLS.get(node.layer or node.kind, "#ffffff")}" stroke="{INK}"/>'
        f"{_words(x + WIDTH // 2, y + 19, name)}"
        f"{_words(x + WIDTH // 2, y + 34, node.layer or node.kind, INK)}</g>"
    )


def _words(x: int, y: int, words: str, ink: str = "#111827") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="middle" fill="{ink}">{escape(words)}</text>'
