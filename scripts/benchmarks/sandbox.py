"""A temporary directory with samples, bundles and caches, in which the measured commands are prepared and run."""

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
    directory: Path  # the working directory
    tables: Path
    checkpoints: Path
    checkpoint_path: str = "{step}"  # path of a step's checkpoint, relative to `checkpoints`

    def checkpoint(self, step: str) -> Path:
        """Return the directory of Spark's checkpoint of a step."""
        return self.checkpoints / self.checkpoint_path.format(step=step)

    def rows(self, table: str) -> int:
        """Return the number of rows in an append-only table, according to its Delta log."""
        return sum(
            json.loads(add["stats"])["numRecords"]
            for file in sorted((self.tables / table / "_delta_log").glob("*.json"))
            for line in file.read_text().splitlines()
            if (add := json.loads(line).get("add"))
        )


@dataclass(frozen=True)
class Sandbox:
    """The temporary directory `home`, and the options of the command line."""

    home: Path
    rows: int = FULL_ROWS  # of the section bulk; the other sections are scaled accordingly
    minutes: Sequence[float] = (2.0,)  # lengths of the windows of the section fresh
    state_keys: int = 0  # in bronze's state at the start of a window of fresh; 0 for no large state
    order: str = "ABBA"  # of the windows of fresh: A is Headrace, B the baseline
    memory: str = ""  # the engine's memory, such as 4g; empty for that of conf/local.yml
    _directory_numbers: Any = field(default_factory=count)

    @property
    def is_trial(self) -> bool:
        """Whether less than the full size is measured, so that the targets do not apply."""
        return self.rows < FULL_ROWS

    def scaled(self, full_rows: int, *, minimum: int) -> int:
        """Return a number of rows, scaled in proportion to `rows`, but at least `minimum`."""
        return max(minimum, full_rows * self.rows // FULL_ROWS)

    @cached_property
    def environment(self) -> dict[str, str]:
        """The environment variables of every command. Its cache is in this directory, and has the jars already."""
        jar_directory = jars.spark_jars(pyspark.__version__)[0].parent
        cache = self.home / "cache"
        cache.mkdir()
        (cache / "jars").symlink_to(jar_directory)
        excluded = ("PYTHONPATH", "COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG")
        variables = {key: value for key, value in os.environ.items() if key not in excluded}
        return variables | {"HEADRACE_CACHE": str(cache), "SPARK_LOCAL_IP": "127.0.0.1"}

    @cached_property
    def class_path(self) -> str:
        """The class path of a Headrace session: its jars and its compiled classes."""
        spark_jars = jars.spark_jars(pyspark.__version__)
        return os.pathsep.join(str(jar) for jar in [*spark_jars, java_compiler.compiled_classes(spark_jars)])

    def sample(self, name: str, orders: int, **settings: Any) -> Path:
        """Return a directory with orders and customers; generate it if it does not exist.

        `settings` are further arguments of `make_sample`.
        """
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
        """Create a bundle that reads the directory `data`, and return the directory of the bundle.

        The bundle has `files` (path -> text) if they are given, otherwise the configuration of the repository.
        `settings` are Spark settings of the environment.
        """
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
        """Return the command `headrace run` in the bundle at `root`."""
        command = [str(Path(sys.executable).with_name("headrace")), "run", pipeline, *arguments]
        output = root / ".headrace"
        checkpoint_path = f"{pipeline}/{{step}}/1/spark"
        return Command("headrace", command, root, output / "tables", output / "checkpoints", checkpoint_path)

    def baseline(self, data: Path, *arguments: str, settings: str = "tuned") -> Command:
        """Return the command of the baseline, with the same memory as Headrace, and "tuned" or "stock" settings."""
        root = self.new_directory(f"baseline-{settings}")
        command = [sys.executable, str(BASELINE), str(data), str(root), "--jars", self.class_path]
        command += ["--settings", settings, "--memory", self.engine_memory, *arguments]
        return Command(f"baseline, {settings}", command, root, root / "tables", root / "checkpoints")

    @cached_property
    def engine_memory(self) -> str:
        """The memory of the engine, such as 2g."""
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
            f"  {command.name}: {cost.wall_s:.1f} s (session ready after {cost.session_ready_s:.1f} s), "
            f"{cost.cpu_s:.1f} CPU s, {cost.memory_mb:.0f} MB, other processes used {cost.other_cores:.2f} cores"
        )
        return cost

    def warm_up(self) -> None:
        """Run both contenders once unless a class archive exists. This creates the archive and fills the page cache."""
        if not any((self.home / "cache" / "classes").glob("*.jsa")):
            process_cost.print_progress("warming up: headrace creates its class archive …")
            data = self.sample("warm-up", 5_000, files=10)
            self.run(self.headrace(self.bundle("warm-up", data), "orders"))
            self.run(self.baseline(data))

    def new_directory(self, name: str) -> Path:
        """Create a new directory whose name ends with `name`, and return it."""
        directory = self.home / "runs" / f"{next(self._directory_numbers):03d}-{name}"
        directory.mkdir(parents=True)
        return directory
