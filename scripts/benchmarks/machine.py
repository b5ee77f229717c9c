"""The machine that the figures were measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from headrace.spark import java

REPOSITORY = Path(__file__).resolve().parents[2]


def facts() -> dict[str, str | int | float]:
    """Its size, its load and the versions."""
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


def line(told: dict[str, str | int | float]) -> str:
    """In one line."""
    return (
        f"{told['cores']} cores ({told['processor']}), {told['memory_gb']} GB, load {told['load']} at the start; "
        f"Python {told['python']}, Java {told['java']}, Spark {told['spark']}, Delta {told['delta']}; {told['commit']}"
    )


def _commit() -> str:
    command = ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty", "--abbrev=10"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    return told.stdout.strip() or "no commit"
