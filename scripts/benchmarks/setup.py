"""Measure the first and the second `scripts/run` of a new user, in a fresh clone with empty caches."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import process_cost
from figures import Figure, Section
from machine import REPOSITORY
from sandbox import Sandbox


def measure(sandbox: Sandbox) -> Section:
    """Measure the wall time of both runs in a clone of the last commit."""
    home, clone = sandbox.new_directory("home"), sandbox.new_directory("clone") / "headrace"
    subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(clone)], check=True)
    venv_programs = Path(sys.executable).parent  # of the environment that runs this benchmark
    path = [directory for directory in os.environ["PATH"].split(os.pathsep) if Path(directory) != venv_programs]
    excluded = ("VIRTUAL_ENV", "HEADRACE_VENV", "HEADRACE_CACHE", "PYTHONPATH")
    environment = {key: value for key, value in os.environ.items() if key not in excluded}
    environment |= {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "PIP_CACHE_DIR": str(home / "pip"),
        "PATH": os.pathsep.join(path),
    }
    seconds = {}
    for name in ("first", "second"):
        process_cost.print_progress(f"setup: the {name} scripts/run in a fresh clone …")
        log = home / f"{name}.txt"
        seconds[name] = process_cost.run(["scripts/run"], directory=clone, environment=environment, log=log).wall_s
        process_cost.print_progress(f"  {seconds[name]:.0f} s")
    return Section(
        "setup: scripts/run in a fresh clone",
        [
            Figure("first run, with empty caches, s", seconds["first"], "at most", 240),
            Figure("second run, s", seconds["second"], "at most", 40),
        ],
        raw={"seconds": seconds},
    )
