"""The text of expressions, in which columns are named after the inputs that they come from.

Spark prints a column as its name and an id, which differs in each session. The id is replaced by the column's lineage,
such as `orders.amount` or `sum(orders.amount)`. Ids are resolved per branch of the plan, because Union reuses the ids
of its first branch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from headrace.signatures.code_fingerprint import code_fingerprint, short_hash
from headrace.signatures.plan_nodes import class_name, items, type_name
from headrace.signatures.python_functions import UDF_CLASSES, load_function
from headrace.signatures.signature import Column
from headrace.signatures.time_windows import replace_window_times, window_computed_by

ID = re.compile(r"#(\d+)L?(?:-T\d+ms)?")  # L marks a bigint, T a watermark's delay
# The id of a Python function or of a subquery. The text of an expression shows only this id, and not their code.
HAS_NESTED_CODE = re.compile(r"\)#\d|(?:subquery|list|exists)#\d")
LAMBDA_VARIABLE = re.compile(r"lambda \w+$")
# Seeds of random functions. A number of nine or more digits counts as a seed that Spark chose. A shorter number is the
# user's, and stays.
SEED = re.compile(r"\b(randn?|randstr|uniform)(\((?:[^()]|\([^()]*\))*?)(?:, )?-?\d{9,}")
OPTIONAL_SEED = re.compile(r"(?:, )?Some\(-?\d+\)")
JAVA_ADDRESS = re.compile(r"\b((?:org|java|scala)\.[\w.$]+)@[0-9a-f]{1,8}\b")
LONGEST_TEXT = 400
SUBQUERIES = {"ScalarSubquery", "ListQuery", "Exists", "LateralSubquery"}


class Lineage(NamedTuple):
    """A column of the plan: its name, and the text that says how it is computed."""

    name: str
    text: str


Scope = Mapping[str, Lineage]  # by column id


class ExpressionTexts:
    """Renders expressions. `read_subquery` returns the text of a subquery's plan."""

    def __init__(self, time_zone: str, read_subquery: Callable[[Any, Scope], str]) -> None:
        self._time_zone = time_zone
        self._read_subquery = read_subquery
        self._subqueries: dict[str, str] = {}
        self.window_filters: set[str] = set()  # the filters that Spark adds for time windows

    def text(self, expression: Any, scope: Scope) -> str:
        """Return the text of an expression, without anything that differs between sessions."""
        raw = str(expression.toString())
        hashes = self._nested_code(expression, scope) if HAS_NESTED_CODE.search(raw) else {}
        text = replace_window_times(without_session_values(_replace_ids(raw, scope, hashes)))
        text = text.replace(f"Some({self._time_zone})", "session time zone")
        if window := window_computed_by(text):  # Spark has replaced a time window by this arithmetic
            self.window_filters |= window.added_filters
            return window.text
        return text

    def column(self, expression: Any, scope: Scope) -> Column:
        """Return an expression as a column. Its name is empty unless the expression is an alias or an attribute."""
        kind = class_name(expression)
        name = str(expression.name()) if kind in ("Alias", "AttributeReference") else ""
        computed = expression.child() if kind == "Alias" else expression
        return Column(name, type_name(expression), shorten(self.text(computed, scope)))

    def _nested_code(self, expression: Any, scope: Scope) -> dict[str, str]:
        """Return the hashes of the Python functions and subqueries in an expression, by their ids."""
        kind, hashes = class_name(expression), {}
        if kind in UDF_CLASSES:
            hashes[str(expression.resultId().id())] = code_fingerprint(load_function(expression))
        elif kind in SUBQUERIES:
            subquery_id = str(expression.exprId().id())
            if subquery_id not in self._subqueries:
                self._subqueries[subquery_id] = short_hash(self._read_subquery(expression.plan(), scope))
            hashes[subquery_id] = self._subqueries[subquery_id]
        for child in items(expression.children()):
            hashes |= self._nested_code(child, scope)
        return hashes


def without_session_values(text: str) -> str:
    """Return the text without random seeds and addresses of Java objects."""
    return JAVA_ADDRESS.sub(r"\1", OPTIONAL_SEED.sub("", SEED.sub(r"\1\2", text)))


def shorten(text: str) -> str:
    """Return the text, or the beginning and the hash of a long one."""
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 100]}…~{short_hash(text)}"


def _replace_ids(raw: str, scope: Scope, hashes: Mapping[str, str]) -> str:
    """Return the text with replacements for names that have ids.

    Columns are replaced by their lineage, and variables of lambdas by numbers. Functions and subqueries get their hash
    from `hashes`. An unknown `#12` stays: it is part of a literal or a name.
    """
    lambdas: dict[str, str] = {}
    text, position = "", 0
    for match in ID.finditer(raw):
        head, number = raw[position : match.start()], match[1]
        column = scope.get(number)
        if column and head.lower().endswith(column.name.lower()):
            head = head[: len(head) - len(column.name)] + column.text
        elif number in hashes:
            head += f"{{{hashes[number]}}}"
        elif variable := LAMBDA_VARIABLE.search(head):
            head = head[: variable.start()] + lambdas.setdefault(number, f"\\{len(lambdas)}")
        else:
            continue
        text, position = text + head, match.end()
    return text + raw[position:]
