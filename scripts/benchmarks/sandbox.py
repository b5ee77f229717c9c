"""Prepare and run the measured commands in a temporary directory with its own samples, bundles and caches."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import process_cost
import pyspark
from machine import REPOSITORY

from headrace.spark import jars, java_compiler
from headrace_shop.sample import make_sample

BASELINE = Path(__file__).with_name("baseline.py")
FULL_ROWS = 1_000_000


@dataclass(frozen=True)
class Command:
    """A command that can be run once, and the directories that it writes to."""

    name: str
    arguments: list[str]
    directory: Path
    tables: Path
    checkpoints: Path
    checkpoint_path: str = "{step}"  # of a step's checkpoint, relative to `checkpoints`

    def checkpoint(self, step: str) -> Path:
        """Return the checkpoint directory that Spark owns."""
        return self.checkpoints / self.checkpoint_path.format(step=step)

    def rows(self, table: str) -> int:
        """Return the number of rows of an append-only table, from its log."""
        return sum(
            json.loads(add["stats"])["numRecords"]
            for file in sorted((self.tables / table / "_delta_log").glob("*.json"))
            for line in file.read_text().splitlines()
            if (add := json.loads(line).get("add"))
        )


@dataclass(frozen=True)
class Sandbox:
    """The temporary directory, and the size of the benchmark."""

    home: Path
    rows: int = FULL_ROWS
    minutes: Sequence[float] = (2.0,)
    state: int = 0
    order: str = "ABBA"
    memory: str = ""
    _numbers: Any = field(default_factory=count)

    @property
    def is_trial(self) -> bool:
        """Return whether less than the full size is measured."""
        return self.rows < FULL_ROWS

    def scaled(self, full: int, *, minimum: int) -> int:
        """Return the number scaled down for a trial."""
        return max(minimum, full * self.rows // FULL_ROWS)

    @cached_property
    def environment(self) -> dict[str, str]:
        """The environment variables of every command, with a separate cache that has the jars already."""
        jar_directory = jars.spark_jars(pyspark.__version__)[0].parent
        cache = self.home / "cache"
        cache.mkdir()
        (cache / "jars").symlink_to(jar_directory)
        excluded = ("PYTHONPATH", "COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG")
        variables = {key: value for key, value in os.environ.items() if key not in excluded}
        return variables | {"HEADRACE_CACHE": str(cache), "SPARK_LOCAL_IP": "127.0.0.1"}

    @cached_property
    def class_path(self) -> str:
        """The jars of Headrace's own session."""
        spark_jars = jars.spark_jars(pyspark.__version__)
        return os.pathsep.join(str(jar) for jar in [*spark_jars, java_compiler.compiled_classes(spark_jars)])

    def sample(self, name: str, orders: int, **settings: Any) -> Path:
        """Return a directory with orders and customers. Generate it if it does not exist."""
        directory = self.home / "samples" / name
        if not directory.exists():
            process_cost.print_progress(f"generating {orders:,} orders …")
            directory.mkdir(parents=True)
            make_sample(directory, orders=orders, **settings)
        return directory

    def bundle(
        self,
        name: str,
        data: Path,
        files: Mapping[str, str] | None = None,
        *,
        settings: Mapping[str, str] | None = None,
    ) -> Path:
        """Create a bundle that reads `data`: with `files` if given, otherwise with the repository's configuration."""
        root = self.new_directory(name)
        if files is None:
            shutil.copytree(REPOSITORY / "conf", root / "conf")
            shutil.copytree(REPOSITORY / "resources", root / "resources")
            shutil.copy(REPOSITORY / "databricks.yml", root)
        for path, text in (files or {}).items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        if self.memory:
            local = root / "conf" / "local.yml"
            local.write_text(re.sub(r"memory: \w+", f"memory: {self.memory}", local.read_text()))
        if settings:
            (root / "conf" / "local.yml").open("a").write(f"settings: {json.dumps(settings)}\n")
        (root / "data").symlink_to(data)
        return root

    def headrace(self, root: Path, pipeline: str, *arguments: str) -> Command:
        """Return the command `headrace run` in a bundle."""
        command = [str(Path(sys.executable).with_name("headrace")), "run", pipeline, *arguments]
        output = root / ".headrace"
        checkpoint_path = f"{pipeline}/{{step}}/1/spark"
        return Command("headrace", command, root, output / "tables", output / "checkpoints", checkpoint_path)

    def baseline(self, data: Path, *arguments: str, settings: str = "tuned") -> Command:
        """Return the command of the baseline, with the same memory and cores."""
        root = self.new_directory(f"baseline-{settings}")
        command = [sys.executable, str(BASELINE), str(data), str(root), "--jars", self.class_path]
        command += ["--settings", settings, "--memory", self.engine_memory, *arguments]
        return Command(f"baseline, {settings}", command, root, root / "tables", root / "checkpoints")

    @cached_property
    def engine_memory(self) -> str:
        """The engine's memory, like 2g."""
        configured = re.search(r"memory: (\w+)", (REPOSITORY / "conf" / "local.yml").read_text())
        assert configured is not None
        return self.memory or configured[1]

    def run(self, command: Command) -> process_cost.Cost:
        """Run the command and return its cost."""
        cost = process_cost.run(
            command.arguments,
            directory=command.directory,
            environment=self.environment,
            log=command.directory / "log.txt",
            marker=command.checkpoints,
        )
        process_cost.print_progress(
            f"  {command.name}: {cost.wall:.1f} s (session ready after {cost.started:.1f}), {cost.cpu:.1f} CPU s, "
            f"{cost.memory:.0f} MB, others used {cost.others:.2f} cores"
        )
        return cost

    def warm_up(self) -> None:
        """Create the class archive if there is none, as a user's first run does, and fill the page cache."""
        if not any((self.home / "cache" / "classes").glob("*.jsa")):
            process_cost.print_progress("warming up: headrace creates its class archive …")
            data = self.sample("warm-up", 5_000, files=10)
            self.run(self.headrace(self.bundle("warm-up", data), "orders"))
            self.run(self.baseline(data))

    def new_directory(self, name: str) -> Path:
        """Create a new directory."""
        directory = self.home / "runs" / f"{next(self._numbers):03d}-{name}"
        directory.mkdir(parents=True)
        return directory
