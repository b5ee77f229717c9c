"""Pieces of Markdown."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence

NOTICE = "<!-- Made from the code by scripts/reference/make.py. Change the code instead of this file. -->"


def page(title: str, introduction: str, sections: Iterable[str]) -> str:
    """Return a page."""
    return "\n\n".join([NOTICE, f"# {title}", introduction.strip(), *sections]) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def code(text: str, language: str = "text") -> str:
    """Return a block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def alternatives(items: Sequence[str]) -> str:
    """Return "a, b or c"."""
    *first, last = items
    return f"{', '.join(first)} or {last}" if first else last


def docstring(thing: object) -> str:
    """Return the docstring of a thing, which must have one."""
    text = inspect.getdoc(thing)
    assert text, f"{thing} has no docstring"
    return text
