"""Describe the machine on which the figures are measured."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from headrace.spark import java

REPOSITORY = Path(__file__).resolve().parents[2]


def facts() -> dict[str, str | int | float]:
    """Return the size and load of the machine, the versions of the software, and the commit."""
    memory = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": models[0].partition(":")[2].strip() if models else platform.machine(),
        "memory_gb": round(int(memory.split()[1]) / (1 << 20), 1),
        "load": round(os.getloadavg()[0], 2),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "java": java.require(),
        "spark": version("pyspark"),
        "delta": version("delta-spark"),
        "commit": _commit(),
    }


def line(facts: dict[str, str | int | float]) -> str:
    """Return the facts as one line of text."""
    return (
        f"{facts['cores']} cores ({facts['processor']}), {facts['memory_gb']} GB, load {facts['load']} at the start; "
        f"Python {facts['python']}, Java {facts['java']}, Spark {facts['spark']}, Delta {facts['delta']}; "
        f"{facts['commit']}"
    )


def _commit() -> str:
    """Return the checked-out commit, marked as dirty if there are uncommitted changes."""
    command = ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty", "--abbrev=10"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout.strip() or "no commit"
