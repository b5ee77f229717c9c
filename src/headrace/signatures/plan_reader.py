"""Read the analysed plan of a query: what it reads, filters, joins, keeps in state and returns.

Projections leave no trace of their own. They only decide how the columns of the operators above are computed, so
that a query means the same however its projections are split or ordered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.signatures import stateful_operators
from headrace.signatures.code_fingerprint import short_hash
from headrace.signatures.expression_text import ExpressionTexts, Lineage, Scope, shorten, without_session_values
from headrace.signatures.plan_leaves import PlanLeaves
from headrace.signatures.plan_nodes import class_name, column_id, conjuncts, items, type_name
from headrace.signatures.signature import Column, Operator, Watermark

Columns = dict[str, Lineage]
# Operators that change neither rows nor columns.
TRANSPARENT = {
    *("SubqueryAlias", "View", "ResolvedHint", "UnresolvedHint", "WithCTE", "CollectMetrics"),
    *("Repartition", "RepartitionByExpression", "RebalancePartitions"),
}


class PlanReader:
    """Walks a plan from its leaves to its root, and collects its operators in the order of the state directories."""

    def __init__(self, inputs: Mapping[str, Mapping[str, str]], output_mode: str, time_zone: str) -> None:
        self._output_mode = output_mode
        self.leaves = PlanLeaves(inputs)
        self.stateful: list[Operator] = []
        self.watermarks: list[Watermark] = []
        self.joins: list[Operator] = []
        self.others: list[str] = []
        self._filters: list[tuple[str, str]] = []  # where the filter is, and its condition
        self._outer: Columns = {}  # columns that subqueries take from the query around them
        self._texts = ExpressionTexts(time_zone, self._read_subquery)

    @property
    def filters(self) -> list[str]:
        """Return the conditions of the query's filters, without those that Spark adds for time windows."""
        own = self._texts.window_filters
        return sorted(place + condition for place, condition in self._filters if condition not in own)

    def read(self, plan: Any) -> list[Column]:
        """Read the plan, and return the columns of its result, sorted by name."""
        scope = self._walk(plan)
        columns = []
        for item in items(plan.output()):
            name = without_session_values(str(item.name()))
            columns.append(Column(name, type_name(item), scope[column_id(item)].text))
        return sorted(columns, key=lambda column: (column.name, column.text))

    def _walk(self, node: Any) -> Columns:
        """Read the operators below and in `node`, and return the columns of its output."""
        children = list(items(node.children()))
        if not children:
            return self.leaves.read(node)
        kind = str(node.nodeName())
        branches = [self._branch(child, number if kind == "Union" else 0) for number, child in enumerate(children, 1)]
        if kind == "Union":
            return self._union(node, children, branches)
        scope = {number: column for branch in branches for number, column in branch.items()}
        if kind == "Project":
            return {column_id(item): self._projected(item, scope) for item in items(node.projectList())}
        if kind == "Expand":
            return scope | self._expanded(node, scope)
        if kind == "Filter":
            place = f"after {self.stateful[-1].kind}: " if self.stateful else ""
            place = place if node.isStreaming() else "static: "
            self._filters += [(place, self._text(part, scope)) for part in conjuncts(node.condition())]
        elif kind == "EventTimeWatermark":
            self.watermarks.append(Watermark(self._text(node.eventTime(), scope), str(node.delay().toString())))
        elif kind == "Join":
            self._join(node, scope)
        elif kind == "Aggregate":
            scope |= self._aggregate(node, scope)
        elif kind in ("Deduplicate", "DeduplicateWithinWatermark", "Distinct"):
            self._add(node, stateful_operators.read_deduplication(node, lambda item: self._column(item, scope)))
        elif kind in stateful_operators.STATE_FUNCTIONS:
            self.stateful.append(stateful_operators.read_state_function(node, lambda item: self._column(item, scope)))
        elif kind == "GlobalLimit" and self._output_mode == "append" and node.isStreaming():
            self.stateful.append(stateful_operators.read_limit(node))  # Spark counts the rows in a state store
        elif kind == "LocalLimit" and node.isStreaming():
            pass  # part of the GlobalLimit above
        elif kind not in TRANSPARENT:
            return self._other(node, kind, scope)
        return self._with_new_columns(node, kind, scope)

    def _branch(self, node: Any, number: int) -> Columns:
        """Read a child of a node. In a union, `number` marks the filters of the branch; otherwise it is 0."""
        start = len(self._filters)
        scope = self._walk(node)
        if number:
            self._filters[start:] = [(f"branch {number}: {place}", text) for place, text in self._filters[start:]]
        return scope

    def _text(self, expression: Any, scope: Scope) -> str:
        return shorten(self._texts.text(expression, {**self._outer, **scope}))

    def _column(self, expression: Any, scope: Scope) -> Column:
        return self._texts.column(expression, {**self._outer, **scope})

    def _projected(self, item: Any, scope: Scope) -> Lineage:
        if class_name(item) != "Alias" and column_id(item) in scope:
            return scope[column_id(item)]
        computed = item.child() if class_name(item) == "Alias" else item
        return Lineage(str(item.name()), self._text(computed, scope))

    def _aggregate(self, node: Any, scope: Scope) -> Columns:
        """Add the aggregation to the operators, and return the columns that it computes."""
        operator = stateful_operators.read_aggregation(node, lambda item: self._column(item, scope))
        self._add(node, operator)
        expressions = list(items(node.aggregateExpressions()))
        return {column_id(item): Lineage(str(item.name()), self._column(item, scope).text) for item in expressions}

    def _join(self, node: Any, scope: Scope) -> None:
        operator = stateful_operators.read_join(node, lambda item: self._column(item, scope))
        streams = [side.isStreaming() for side in items(node.children())]
        if all(streams):
            self.stateful.append(operator)
        elif any(streams):
            self.joins.append(operator)
        else:
            self.others.append(f"static join {_describe(operator)}")

    def _add(self, node: Any, operator: Operator) -> None:
        """Add an operator: on a stream, it has state; on static rows, it is one of the others."""
        if node.isStreaming():
            self.stateful.append(operator)
        else:
            self.others.append(shorten(f"static {operator.kind} {_describe(operator)}"))

    def _union(self, node: Any, children: list[Any], branches: list[Columns]) -> Columns:
        texts = [
            [branch[column_id(item)].text for item in items(child.output())]
            for child, branch in zip(children, branches, strict=True)
        ]
        united = zip(items(node.output()), *texts, strict=True)
        return {
            column_id(item): Lineage(str(item.name()), shorten(f"union({' | '.join(parts)})"))
            for item, *parts in united
        }

    def _expanded(self, node: Any, scope: Scope) -> Columns:
        """Return the columns of Expand, which computes each row several times: for sliding windows, cube and rollup."""
        rows = [[self._text(item, scope) for item in items(projection)] for projection in items(node.projections())]
        columns: Columns = {}
        for item, *parts in zip(items(node.output()), *rows, strict=True):
            is_same = parts[0].startswith("window(") or len(set(parts)) == 1
            text = parts[0] if is_same else f"expand({' | '.join(parts)})"
            columns[column_id(item)] = Lineage(str(item.name()), shorten(text))
        return columns

    def _other(self, node: Any, kind: str, scope: Columns) -> Columns:
        """Record an operator that has no rule of its own by its expressions."""
        own = {column_id(item): Lineage(str(item.name()), str(item.name())) for item in items(node.output())}
        texts = [self._text(item, {**own, **scope}) for item in items(node.expressions())]
        self.others.append(shorten(f"{kind}: {'; '.join(texts)}" if texts else kind))
        return self._with_new_columns(node, f"{kind}~{short_hash(str(texts))}", scope)

    def _with_new_columns(self, node: Any, origin: str, scope: Columns) -> Columns:
        """Return the scope, and the columns that the node itself makes, whose text is `origin` and their name."""
        made = {column_id(item): str(item.name()) for item in items(node.output())}
        return {number: Lineage(name, f"{origin}.{name}") for number, name in made.items()} | scope

    def _read_subquery(self, plan: Any, scope: Scope) -> str:
        """Return the text of a subquery: its columns, and the filters and other operators in it."""
        outer, filters, others = self._outer, len(self._filters), len(self.others)
        self._outer = {**self._outer, **scope}
        columns = self.read(plan)
        self._outer = outer
        return str([[column.text for column in columns], self._filters[filters:], self.others[others:]])


def _describe(operator: Operator) -> str:
    keys = ", ".join(key.text for key in operator.keys)
    values = ", ".join(value.text for value in operator.values)
    properties = ", ".join(f"{name} {value}" for name, value in sorted(operator.properties.items()))
    return "; ".join(filter(None, (keys, values, properties)))
