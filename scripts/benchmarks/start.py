"""Measure commands that start no JVM, compared with `python -c pass`."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from figures import Figure, Section
from machine import REPOSITORY
from process_cost import print_progress
from sandbox import Sandbox

from headrace.testing.workspace import LocalWorkspace

REPETITIONS = 11


def measure(sandbox: Sandbox) -> Section:
    """Run all commands one after the other, several times, and compare their median durations."""
    headrace = str(Path(sys.executable).with_name("headrace"))
    bundle = sandbox.new_directory("start") / "bundle"
    subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(bundle)], check=True)
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "headrace --help": [headrace, "--help"],
        "headrace check": [headrace, "check"],
        "headrace plan": [headrace, "plan", "--env", "staging"],
    }
    print_progress(f"start: {', '.join(commands)}, {REPETITIONS} times each …")
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    with LocalWorkspace(bundle.parent / "workspace", execute=False) as workspace:
        login = {"DATABRICKS_HOST": workspace.url, "DATABRICKS_TOKEN": workspace.token}
        options = {"cwd": bundle, "env": {**sandbox.environment, **login}, "stdout": subprocess.DEVNULL, "check": True}
        subprocess.run([headrace, "deploy", "--env", "staging", "--yes"], **options)
        for repetition in range(REPETITIONS + 1):
            for name, command in commands.items():
                started_at = time.perf_counter()
                subprocess.run(command, **options)
                if repetition > 0:  # the first repetition is slower: it reads from disk and compiles
                    seconds[name].append(time.perf_counter() - started_at)
    medians = {name: median(values) for name, values in seconds.items()}
    python = medians["python -c pass"]
    return Section(
        "start: commands without a JVM",
        [
            Figure("headrace --help / python -c pass", medians["headrace --help"] / python, "at most", 10),
            Figure("headrace check / python -c pass", medians["headrace check"] / python, "at most", 35),
            Figure("headrace plan, nothing changed / python -c pass", medians["headrace plan"] / python, "at most", 50),
        ],
        [f"{name:<16} {1000 * value:.0f} ms" for name, value in medians.items()],
        {"seconds": seconds},
    )
