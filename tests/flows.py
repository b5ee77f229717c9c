"""A small pipeline in a test's own directory: YAML and rows in, tables out, and crashes between two writes."""

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
from headrace.graph.order import all_steps
from headrace.runtime import prepare
from headrace.testing import PipelineRun, run_pipeline
from headrace.testing.pipeline_run import relocate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "flow"


class Flow:
    """One pipeline: written, fed, run, crashed, run again."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self.spark, self.directory = spark, directory
        self._sources: dict[str, str] = {}
        self._steps = ""
        self._fed = 0
        (directory / "conf" / "pipelines").mkdir(parents=True)

    def source(self, name: str, format: str = "json", **options: Any) -> Path:  # noqa: A002
        """A source of files; the directory that they lie in."""
        place = self.directory / "data" / name
        place.mkdir(parents=True, exist_ok=True)
        self.other_source(name, kind="files", format=format, path=str(place), options=options)
        return place

    def other_source(self, name: str, **keys: Any) -> None:
        """A source of any kind."""
        self._sources[name] = json.dumps(keys)

    def feed(self, source: str, *lines: Any, file: str = "") -> Path:
        """One more file for the source; what is not text becomes JSON."""
        place = self.directory / "data" / source
        path = place / (file or f"{self._fed:03}.txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        text = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_text("".join(f"{line}\n" for line in text))
        self._fed += 1
        os.utime(path, (time.time() - 3600 + self._fed,) * 2)  # Spark reads the oldest file first
        return path

    def steps(self, text: str) -> None:
        """What conf/pipelines/flow.yml says under `steps`."""
        self._steps = dedent(text)

    def bundle(self) -> Bundle:
        """The configuration as a run sees it."""
        conf = self.directory / "conf"
        (conf / "pipelines" / f"{NAME}.yml").write_text("steps:\n" + indent(self._steps, "  "))
        sources = "".join(f"  {name}: {keys}\n" for name, keys in self._sources.items())
        local = "engine: {kind: local}\ntables: {root: tables}\ncheckpoints: checkpoints\n"
        local += "folders: {out: out}\nsources:\n"
        (conf / "local.yml").write_text(local + sources)
        return relocate(load_bundle(self.directory), self.directory)

    def run(self, *only: str) -> PipelineRun:
        """Runs the steps, or those named, over what is there."""
        self.bundle()
        return run_pipeline(self.spark, self.directory, NAME, self.directory, only=only)

    def rehearse(self) -> list[prepare.PreparedStep]:
        """Prepares all steps, starting none."""
        bundle = self.bundle()
        return prepare.prepare_all(self.spark, all_steps(bundle), bundle.environment)

    def crash_before_commit(self, step: str, *, undo: Sequence[str] = ()) -> None:
        """Leaves all as a crash between the last batch's writes and its commit does.

        `undo` names tables that the crash came too early for: their last version is taken back.
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
        """All rows of a table, read without Spark; none of one that is not there."""
        place = str(self.directory / "tables" / table)
        return DeltaTable(place).to_pyarrow_table().to_pylist() if DeltaTable.is_deltatable(place) else []

    def files(self) -> set[str]:
        """All files that runs have written."""
        return {str(file.relative_to(self.directory)) for file in self.directory.rglob("*") if file.is_file()}
