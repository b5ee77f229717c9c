"""A new user's first and second `scripts/run`: a fresh clone, empty caches. Only measured when it is asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import measure as costs
from figures import Figure, Section
from ground import Ground
from machine import REPOSITORY


def measure(ground: Ground) -> Section:
    """Wall time of both runs; what was committed is cloned."""
    home, clone = ground.fresh("home"), ground.fresh("clone") / "headrace"
    subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(clone)], check=True)
    own = Path(sys.executable).parent
    path = [place for place in os.environ["PATH"].split(os.pathsep) if Path(place) != own]
    dropped = ("VIRTUAL_ENV", "HEADRACE_VENV", "HEADRACE_CACHE", "PYTHONPATH")
    environment = {key: value for key, value in os.environ.items() if key not in dropped}
    environment |= {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "PIP_CACHE_DIR": str(home / "pip"),
        "PATH": os.pathsep.join(path),
    }
    took = {}
    for name in ("first", "second"):
        costs.say(f"setup: the {name} scripts/run in a fresh clone …")
        log = home / f"{name}.txt"
        took[name] = costs.run(["scripts/run"], directory=clone, environment=environment, log=log).wall
        costs.say(f"  {took[name]:.0f} s")
    return Section(
        "setup: scripts/run in a fresh clone",
        [
            Figure("the first, with empty caches, s", took["first"], "at most", 240),
            Figure("the second, s", took["second"], "at most", 40),
        ],
        raw={"seconds": took},
    )
