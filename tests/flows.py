"""Write, feed and run a small pipeline in a test's directory, and simulate crashes between two writes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent, indent
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from headrace.config.load import load_bundle
from headrace.config.models import Bundle
from headrace.errors import ConfigurationError
from headrace.graph.order import all_steps
from headrace.runtime import prepare
from headrace.testing import PipelineRun, run_pipeline
from headrace.testing.pipeline_run import relocate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "flow"


class Flow:
    """A pipeline named `flow` in a directory, with methods to define, feed, run and crash it."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self.spark, self.directory = spark, directory
        self._sources: dict[str, str] = {}
        self._steps = ""
        self._fed = 0
        (directory / "conf" / "pipelines").mkdir(parents=True)

    def source(self, name: str, format: str = "json", **options: Any) -> Path:  # noqa: A002
        """Define a file source and return its directory."""
        directory = self.directory / "data" / name
        directory.mkdir(parents=True, exist_ok=True)
        self.other_source(name, kind="files", format=format, path=str(directory), options=options)
        return directory

    def other_source(self, name: str, **keys: Any) -> None:
        """Define a source of any kind by its keys in YAML."""
        self._sources[name] = json.dumps(keys)

    def feed(self, source: str, *lines: Any, file: str = "") -> Path:
        """Write a new file for the source and return its path. Lines that are not text are written as JSON."""
        path = self.directory / "data" / source / (file or f"{self._fed:03}.txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        text = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_text("".join(f"{line}\n" for line in text))
        self._fed += 1
        os.utime(path, (time.time() - 3600 + self._fed,) * 2)  # Spark reads the oldest file first
        return path

    def steps(self, text: str) -> None:
        """Define the steps: the YAML under `steps` in conf/pipelines/flow.yml."""
        self._steps = dedent(text)

    def bundle(self) -> Bundle:
        """Write the configuration and load it as a run does."""
        conf = self.directory / "conf"
        (conf / "pipelines" / f"{NAME}.yml").write_text("steps:\n" + indent(self._steps, "  "))
        sources = "".join(f"  {name}: {keys}\n" for name, keys in self._sources.items())
        local = "engine: {kind: local}\ntables: {root: tables}\ncheckpoints: checkpoints\n"
        local += "folders: {out: out}\nsources:\n"
        (conf / "local.yml").write_text(local + sources)
        return relocate(load_bundle(self.directory), self.directory)

    def run(self, *only: str) -> PipelineRun:
        """Run all steps, or only those given."""
        self.bundle()
        return run_pipeline(self.spark, self.directory, NAME, self.directory, only=only)

    def rehearse(self) -> list[prepare.PreparedStep]:
        """Prepare all steps without starting them."""
        bundle = self.bundle()
        prepared, problems = prepare.prepare_all(self.spark, all_steps(bundle), bundle.environment)
        problems += [problem for step in prepared for problem in step.problems]
        if problems:
            raise ConfigurationError.of(problems)
        return prepared

    def crash_before_commit(self, step: str, *, undo: Sequence[str] = ()) -> None:
        """Simulate a crash of a step between the writes of its last batch and the batch's commit.

        `undo` are tables that were not written before the crash: their last version is removed.
        """
        spark = self.directory / "checkpoints" / NAME / step / "1" / "spark"
        last = max((spark / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
        assert (spark / "offsets" / last.name).exists()
        last.unlink()
        for table in undo:
            log = self.directory / "tables" / table / "_delta_log"
            newest = max(file.stem for file in log.glob("*.json"))
            for file in log.glob(f"{newest}.*"):
                file.unlink()
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]

    def read(self, table: str) -> list[dict[str, Any]]:
        """Return all rows of a table, read without Spark; none if it does not exist."""
        path = str(self.directory / "tables" / table)
        return DeltaTable(path).to_pyarrow_table().to_pylist() if DeltaTable.is_deltatable(path) else []

    def files(self) -> set[str]:
        """Return the relative paths of all files in the directory."""
        return {str(file.relative_to(self.directory)) for file in self.directory.rglob("*") if file.is_file()}
