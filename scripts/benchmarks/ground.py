"""Where everything is measured: a temporary directory with samples, bundles and caches of its own."""

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

import measure
import pyspark
from machine import REPOSITORY

from headrace.spark import java_compiler, jars
from headrace_shop.sample import make_sample

BY_HAND = Path(__file__).with_name("by_hand.py")
FULL = 1_000_000


@dataclass(frozen=True)
class Attempt:
    """A command that can be measured once, and where it will write."""

    name: str
    command: list[str]
    directory: Path
    tables: Path
    checkpoints: Path
    layout: str = "{step}"  # of a step's checkpoint in `checkpoints`

    def checkpoint(self, step: str) -> Path:
        """The directory that Spark owns."""
        return self.checkpoints / self.layout.format(step=step)

    def rows(self, table: str) -> int:
        """The rows of a table that only grows, by its log."""
        return sum(
            json.loads(added["stats"])["numRecords"]
            for file in sorted((self.tables / table / "_delta_log").glob("*.json"))
            for line in file.read_text().splitlines()
            if (added := json.loads(line).get("add"))
        )


@dataclass(frozen=True)
class Ground:
    """The temporary directory, and how much is to be done in it."""

    home: Path
    rows: int = FULL
    minutes: Sequence[float] = (2.0,)
    state: int = 0
    order: str = "ABBA"
    memory: str = ""
    _numbers: Any = field(default_factory=count)

    @property
    def is_trial(self) -> bool:
        """Whether less than the whole is measured."""
        return self.rows < FULL

    def share(self, full: int, *, least: int) -> int:
        """So much of a full number as this trial is of a full run."""
        return max(least, full * self.rows // FULL)

    @cached_property
    def environment(self) -> dict[str, str]:
        """The variables of every command: a cache of our own, in which the jars are there already."""
        jars_there = jars.spark_jars(pyspark.__version__)[0].parent
        cache = self.home / "cache"
        cache.mkdir()
        (cache / "jars").symlink_to(jars_there)
        dropped = ("PYTHONPATH", "COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG")
        kept = {key: value for key, value in os.environ.items() if key not in dropped}
        return kept | {"HEADRACE_CACHE": str(cache), "SPARK_LOCAL_IP": "127.0.0.1"}

    @cached_property
    def class_path(self) -> str:
        """The jars that Headrace's own session has."""
        found = jars.spark_jars(pyspark.__version__)
        return os.pathsep.join(str(jar) for jar in [*found, java_compiler.compiled_classes(found)])

    def sample(self, name: str, orders: int, **settings: Any) -> Path:
        """A directory with orders and customers, made once."""
        directory = self.home / "samples" / name
        if not directory.exists():
            measure.say(f"making {orders:,} orders …")
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
        """The repository's configuration in a directory of its own; `files` replace all of it."""
        root = self.fresh(name)
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

    def headrace(self, root: Path, pipeline: str, *arguments: str) -> Attempt:
        """`headrace run` in a bundle."""
        command = [str(Path(sys.executable).with_name("headrace")), "run", pipeline, *arguments]
        own = root / ".headrace"
        return Attempt("headrace", command, root, own / "tables", own / "checkpoints", f"{pipeline}/{{step}}/1/spark")

    def by_hand(self, data: Path, *arguments: str, settings: str = "tuned") -> Attempt:
        """The hand-written pipeline, with the same memory and cores."""
        root = self.fresh(f"by-hand-{settings}")
        command = [sys.executable, str(BY_HAND), str(data), str(root), "--jars", self.class_path]
        command += ["--settings", settings, "--memory", self.engine_memory, *arguments]
        return Attempt(f"by hand, {settings}", command, root, root / "tables", root / "checkpoints")

    @cached_property
    def engine_memory(self) -> str:
        """What the environment gives the engine, like 2g."""
        told = re.search(r"memory: (\w+)", (REPOSITORY / "conf" / "local.yml").read_text())
        assert told is not None
        return self.memory or told[1]

    def cost(self, attempt: Attempt) -> measure.Cost:
        """Carries the attempt out."""
        cost = measure.run(
            attempt.command,
            directory=attempt.directory,
            environment=self.environment,
            log=attempt.directory / "log.txt",
            mark=attempt.checkpoints,
        )
        measure.say(
            f"  {attempt.name}: {cost.wall:.1f} s (session up after {cost.started:.1f}), {cost.cpu:.1f} CPU s, "
            f"{cost.memory:.0f} MB, others used {cost.others:.2f} cores"
        )
        return cost

    def warm_up(self) -> None:
        """Makes the class archive, once, as a user's first run does; and fills the page cache."""
        if not any((self.home / "cache" / "classes").glob("*.jsa")):
            measure.say("warming up: headrace makes its class archive …")
            data = self.sample("warm-up", 5_000, files=10)
            self.cost(self.headrace(self.bundle("warm-up", data), "orders"))
            self.cost(self.by_hand(data))

    def fresh(self, name: str) -> Path:
        """A new directory."""
        directory = self.home / "runs" / f"{next(self._numbers):03d}-{name}"
        directory.mkdir(parents=True)
        return directory
