"""How long the commands take that need no JVM, against Python's own start."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from figures import Figure, Section, middle
from ground import Ground
from machine import REPOSITORY
from measure import say

from headrace.testing.workspace import LocalWorkspace

REPETITIONS = 11


def measure(ground: Ground) -> Section:
    """One after the other, again and again."""
    headrace = str(Path(sys.executable).with_name("headrace"))
    bundle = ground.fresh("start") / "bundle"
    subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(bundle)], check=True)
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "headrace --help": [headrace, "--help"],
        "headrace check": [headrace, "check"],
        "headrace plan": [headrace, "plan", "--env", "staging"],
    }
    say(f"start: {', '.join(commands)}, {REPETITIONS} times each …")
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    with LocalWorkspace(bundle.parent / "workspace", execute=False) as workspace:
        login = {"DATABRICKS_HOST": workspace.url, "DATABRICKS_TOKEN": workspace.token}
        given = {"cwd": bundle, "env": {**ground.environment, **login}, "stdout": subprocess.DEVNULL, "check": True}
        subprocess.run([headrace, "deploy", "--env", "staging", "--yes"], **given)
        for repetition in range(REPETITIONS + 1):
            for name, command in commands.items():
                began = time.perf_counter()
                subprocess.run(command, **given)
                if repetition:  # the first one reads the disk and compiles
                    seconds[name].append(time.perf_counter() - began)
    typical = {name: middle(own) for name, own in seconds.items()}
    python = typical["python -c pass"]
    return Section(
        "start: commands without a JVM",
        [
            Figure("headrace --help / python -c pass", typical["headrace --help"] / python, "at most", 10),
            Figure("headrace check / python -c pass", typical["headrace check"] / python, "at most", 35),
            Figure("headrace plan, nothing changed / python -c pass", typical["headrace plan"] / python, "at most", 50),
        ],
        [f"{name:<16} {1000 * value:.0f} ms" for name, value in typical.items()],
        {"seconds": seconds},
    )
