"""Fixtures for all tests: golden files, bundles, workspaces and pipelines."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deployments import TinyBundle
    from flows import Flow
    from headrace.testing import PipelineRun
    from headrace.testing.workspace import LocalWorkspace

GOLDEN = Path(__file__).parent / "golden"

PIPELINE = """\
steps:
  land:
    layer: bronze
    reads: {rows: {source: ticks}}
    writes: {table: landed}
"""
LOCAL = """\
engine: {kind: local}
tables: {root: tables}
checkpoints: checkpoints
sources:
  ticks: {kind: rate}
  orders: {kind: files, format: json, path: data/orders}
"""
SMALL = {"conf/pipelines/p.yml": PIPELINE, "conf/local.yml": LOCAL}


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compare text with a file in tests/golden. With HEADRACE_GOLDEN=write, write the file first."""

    def compare(name: str, text: str) -> None:
        file = GOLDEN / f"{name}.txt"
        text = text.rstrip() + "\n"
        if os.environ.get("HEADRACE_GOLDEN") == "write":
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        assert text == file.read_text(encoding="utf-8")

    return compare


@pytest.fixture
def write_bundle(tmp_path: Path) -> Callable[[Mapping[str, str | bytes | None]], Path]:
    """Write a small bundle with the given files added or replaced. A file with content None is omitted."""

    def write(files: Mapping[str, str | bytes | None]) -> Path:
        root = tmp_path / "shop"
        for name, content in {**SMALL, **files}.items():
            if content is None:
                continue
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return root

    return write


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small bundle with its first release. Tests copy it."""
    from deployments import write_tiny
    from headrace.release import releases

    root = write_tiny(tmp_path_factory.mktemp("tiny") / "tiny")
    releases.current(root)
    return root


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalWorkspace]:
    """A local workspace that executes no tasks. Deployments connect to it by DATABRICKS_HOST."""
    from deployments import serve_tiny

    with serve_tiny(tmp_path / "workspace") as running:
        monkeypatch.setenv("DATABRICKS_HOST", running.url)
        monkeypatch.setenv("DATABRICKS_TOKEN", running.token_for("alice"))
        yield running


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build releases without signatures, because computing them takes seconds."""
    reason = "the tests do not start Spark"
    monkeypatch.setattr("headrace.release.signature_process._compute", lambda root: {"not_computed": reason})


@pytest.fixture
def tiny(built: Path, workspace: LocalWorkspace, without_spark: None, tmp_path: Path) -> TinyBundle:
    """A copy of the small bundle for one test."""
    from deployments import TinyBundle

    return TinyBundle(Path(shutil.copytree(built, tmp_path / "tiny")))


@pytest.fixture
def flow(spark: SparkSession, tmp_path: Path) -> Flow:
    """An empty pipeline for one test."""
    from flows import Flow

    return Flow(spark, tmp_path)


@pytest.fixture(scope="session")
def ran(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Flow, PipelineRun]:
    """A completed run of a pipeline: three files with bad, duplicate and late rows, counted per minute."""
    from flows import Flow

    flow = Flow(spark, tmp_path_factory.mktemp("ran"))
    flow.steps("""
        land:
          layer: bronze
          reads:
            rows: {source: rows, schema: "id STRING, at TIMESTAMP", watermark: {column: at, delay: 2 minutes}}
          transform: headrace.transforms.bronze:deduplicate
          with: {keys: [id]}
          writes: {table: landed}
        count:
          layer: gold
          reads: {rows: {table: landed, watermark: {column: at, delay: 1 minute}, options: {maxFilesPerTrigger: 1}}}
          transform: headrace.transforms.gold:aggregate_windows
          with: {time: at, window: 1 minute, aggregates: {rows: {count: "*"}}}
          writes: {table: counted}
        """)
    flow.source("rows", maxFilesPerTrigger=1)
    for batch, minutes in enumerate([(0, 1, 9), (8,), (1, 9, 10)]):
        rows = [{"id": f"{batch} {minute}", "at": f"2026-01-01T12:{minute:02}:00Z"} for minute in minutes]
        flow.feed("rows", *rows, *(["no json", rows[0]] if batch == 0 else []))
    return flow, flow.run()
