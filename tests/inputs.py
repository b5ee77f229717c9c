"""Environments with sources, for tests that open inputs; and plain runs of the streams that were opened."""

from __future__ import annotations

from typing import Any

from headrace.config.models import Environment, FileSource, LocalEngine, Source, Tables
from headrace.expectations import verdict


def environment(**sources: Source) -> Environment:
    """Return an environment with these sources and no tables."""
    return Environment(
        name="local", engine=LocalEngine(kind="local"), tables=Tables(root="none"), checkpoints="none", sources=sources
    )


def files(path: object, format: str = "json", **options: Any) -> FileSource:  # noqa: A002
    """Return a source of files in a directory."""
    return FileSource(kind="files", format=format, path=str(path), options=options)


def good_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows without a verdict, and without the column for it."""
    good = [row for row in rows if not row.get(verdict.VERDICT)]
    return [{key: value for key, value in row.items() if key != verdict.VERDICT} for row in good]


def verdicts(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the verdicts of the bad rows, by raw record."""
    return {row[verdict.VERDICT]["raw"]: row[verdict.VERDICT] for row in rows if row.get(verdict.VERDICT)}
