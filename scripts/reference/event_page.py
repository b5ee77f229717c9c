"""The reference page of events, from the class of events and the docstrings of its fields."""

from __future__ import annotations

import ast
import inspect
import textwrap

from markdown_text import code, page, table

from headrace.runtime.events import Event

INTRODUCTION = """
A run from a working tree records events in `.headrace/<environment>/events/<pipeline>.jsonl`, one JSON object per line; a
deployed run records them beside the checkpoints. At 16 MB, the file is renamed to `<pipeline>.1.jsonl`. `headrace status`
shows totals of these events. The file is a [versioned format](../compatibility.md): fields may be added, so ignore fields
that you do not know. A field that an event does not need has its default.
"""
EXAMPLE = """
jq -c 'select(.what == "batch") | [.at, .step, .batch, .rows, .lag]' .headrace/local/events/orders.jsonl
"""


def make_event_page() -> str:
    """Return the page."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(Event))).body
    assert isinstance(definition, ast.ClassDef)
    rows = []
    fields = [statement for statement in definition.body if isinstance(statement, ast.AnnAssign)]
    for field in fields:
        text = definition.body[definition.body.index(field) + 1]
        assert isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant), (
            f"{ast.unparse(field)}: no docstring"
        )
        rows.append([f"`{ast.unparse(field.target)}`", _type_name(ast.unparse(field.annotation)), text.value.value])
    fields_table = table(["field", "type", "meaning"], rows)
    return page(
        "Events", INTRODUCTION, [fields_table, "For example, to follow the batches:", code(EXAMPLE.strip(), "sh")]
    )


def _type_name(annotation: str) -> str:
    """Return the JSON type for a type of Python."""
    if annotation.endswith("| None"):
        return f"{_type_name(annotation.removesuffix('| None').strip())} or null"
    names = {"str": "text", "int": "number", "float": "number", "dict": "object", "tuple": "list"}
    return names[annotation.partition("[")[0]]
