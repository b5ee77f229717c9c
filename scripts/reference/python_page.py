"""The reference page of the public Python API: the modules with `__all__`, their signatures and docstrings."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from importlib import import_module
from itertools import takewhile
from types import ModuleType

from markdown_text import code, page

from headrace.transforms.gold import FUNCTIONS

# The public modules, and what they are for.
MODULES = {
    "headrace.transforms.bronze": "Built-in transforms of bronze steps.",
    "headrace.transforms.silver": "Built-in transforms of silver steps.",
    "headrace.transforms.gold": f"Built-in transforms of gold steps. The aggregate functions are {', '.join(f'`{name}`' for name in FUNCTIONS)}.",
    "headrace.testing": "Tools for tests of transforms and pipelines.",
    "headrace.testing.plugin": "Fixtures of the pytest plugin, which pytest loads by itself.",
    "headrace.testing.kafka_broker": "A real Kafka broker for tests.",
    "headrace.testing.workspace": "A local Databricks workspace for tests.",
    "headrace.entry_points": "The entry points of jobs. They read the parameters of the job's task: `pipeline`, `env`, `conf`, `step` and `value`.",
    "headrace.errors": "The [errors](errors.md).",
}
INTRODUCTION = """
What bundles may import. Other modules may change in any version.
"""


def make_python_page() -> str:
    """Return the page."""
    return page("Python", INTRODUCTION, _sections())


def _sections() -> Iterator[str]:
    for name, purpose in MODULES.items():
        module = import_module(name)
        yield f"## {name}"
        yield purpose
        if name != "headrace.errors":
            for member in module.__all__:
                yield f"### {member}"
                yield from _member(member, getattr(module, member), module)


def _member(name: str, member: object, module: ModuleType) -> Iterator[str]:
    """Yield the signature and the docstring of a function or class, and those of the public methods of a class."""
    owner = getattr(member, "__module__", "")
    defining_module = import_module(owner) if owner.startswith("headrace") else module
    lines = inspect.getsource(defining_module).splitlines()
    for statement in ast.parse("\n".join(lines)).body:
        if isinstance(statement, ast.FunctionDef) and statement.name == name:
            yield from _function(statement, lines, "")
        elif isinstance(statement, ast.ClassDef) and statement.name == name:
            fields = [
                _field(each)
                for each in statement.body
                if isinstance(each, ast.AnnAssign) and not _is_class_variable(each)
            ]
            yield code("\n    ".join([f"class {name}:", *(fields or ["..."])]), "python")
            yield _docstring(statement)
            for each in statement.body:
                if isinstance(each, ast.FunctionDef) and not each.name.startswith("_"):
                    yield from _function(each, lines, f"{name}.")
        elif isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == name:
            yield code(ast.unparse(statement), "python")
            comments = takewhile(lambda line: line.startswith("#"), reversed(lines[: statement.lineno - 1]))
            yield " ".join(line.lstrip("# ") for line in reversed(list(comments)))


def _is_class_variable(field: ast.AnnAssign) -> bool:
    return ast.unparse(field.annotation).startswith("ClassVar")


def _field(field: ast.AnnAssign) -> str:
    """Return a field with its type, and with its default if this is a plain value."""
    text = f"{ast.unparse(field.target)}: {ast.unparse(field.annotation)}"
    return f"{text} = {ast.unparse(field.value)}" if isinstance(field.value, ast.Constant) else text


def _function(definition: ast.FunctionDef, lines: list[str], prefix: str) -> Iterator[str]:
    """Yield the signature, as the source has it, and the docstring of a function or method."""
    signature = "\n".join(lines[definition.lineno - 1 : definition.body[0].lineno - 1])
    yield code(
        textwrap.dedent(signature).replace("def ", f"def {prefix}", 1).replace("(self, ", "(").replace("(self)", "()"),
        "python",
    )
    yield _docstring(definition)


def _docstring(definition: ast.FunctionDef | ast.ClassDef) -> str:
    text = ast.get_docstring(definition)
    assert text, f"{definition.name} has no docstring"
    return text
