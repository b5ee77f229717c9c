"""The reference page of errors: the classes of errors, and the errors in the tests' golden files."""

from __future__ import annotations

import re
from pathlib import Path

from markdown_text import code, docstring, page, table

from headrace import errors

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"
INTRODUCTION = """
An error is printed to standard error, and the command exits with 1. It has a message, the place of its cause (a file with a
line, or a step), and a fix. All mistakes in a bundle are reported together.
"""
# The directories of golden files that contain errors, with the titles of their sections.
TITLES = {
    "config": "Pipeline and environment files",
    "databricks": "databricks.yml and jobs",
    "graph": "Transforms and other functions",
    "sources": "Sources",
    "quality": "Expectations",
    "secrets": "Secrets",
    "steps": "Steps that cannot start",
    "start_guard": "Checkpoints and tables that do not belong together",
    "change_guard": "Changed steps",
    "checkpoints": "Checkpoints",
    "reset": "Starting over",
    "failures": "Steps that failed",
    "table_info": "Tables",
    "cli": "Commands",
    "deploy": "Deployments",
    "workspace": "The local workspace",
    "doctor": "This machine",
    "java": "Java",
    "java_compiler": "Java's compiler",
    "jars": "Jars",
    "session": "Spark sessions",
}


def make_error_page() -> str:
    """Return the page."""
    classes = [getattr(errors, name) for name in errors.__all__]
    rows = [
        [f"`{each.__name__}`", docstring(each).partition("\n")[0]] for each in classes if each is not errors.Problem
    ]
    sections = [
        "## Classes",
        table(["class", "meaning"], rows),
        "## Examples",
        "The errors of the tests, by their subject.",
    ]
    known = {path.name for path in GOLDEN.iterdir() if path.is_dir()}
    assert known == TITLES.keys(), f"add titles for {known ^ TITLES.keys()}"
    for directory, title in TITLES.items():
        if examples := _errors(GOLDEN / directory):
            sections += [f"### {title}", code("\n".join(examples))]
    return page("Errors", INTRODUCTION, sections)


def _errors(directory: Path) -> list[str]:
    """Return the errors in a directory of golden files, without those that differ only in their location."""
    found: dict[str, str] = {}
    for file in sorted(directory.glob("*.txt")):
        for error in re.findall(
            r"^Error: .*\n(?:  at   .*\n)?  fix: .*", file.read_text(encoding="utf-8"), re.MULTILINE
        ):
            message = re.sub(r"'[^']*'|\d+", "", error.partition("\n")[0])
            found.setdefault(message, error)
    return list(found.values())
