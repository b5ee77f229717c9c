"""scripts/bench: each section measures its ratios in one run, in a temporary directory."""

from __future__ import annotations

import argparse
import importlib
import json
import signal
import sys
import tempfile
from pathlib import Path

import machine
import measure
from figures import Section
from ground import FULL, Ground

SECTIONS = ("start", "cold", "bulk", "batch", "quality", "fresh")
ON_DEMAND = ("large", "setup")


def main() -> None:
    """The command line."""
    arguments = _arguments()
    told = machine.facts()
    print(machine.line(told), flush=True)
    if arguments.rows < FULL:
        print(f"a trial with --rows {arguments.rows:,}: the targets mean nothing", flush=True)
    measure.adopt_orphans()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that nothing is left running
    found: dict[str, Section] = {}
    with tempfile.TemporaryDirectory(prefix="headrace-bench-", dir=arguments.directory) as home:
        ground = Ground(
            Path(home), arguments.rows, arguments.minutes, arguments.state, arguments.order, arguments.memory
        )
        for name in arguments.sections or SECTIONS:
            found[name] = importlib.import_module(name).measure(ground)
            print(f"\n{found[name].text()}", flush=True)
            if arguments.output:
                facts = {"machine": told, "sections": {name: section.facts() for name, section in found.items()}}
                arguments.output[1].write_text(json.dumps(facts, indent=2) + "\n")


def _lengths(told: str) -> list[float]:
    return [float(one) for one in told.split(",")]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    known = f"{', '.join(SECTIONS)}; on demand: {', '.join(ON_DEMAND)}"
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=known)
    parser.add_argument("--rows", type=int, default=FULL, help="rows of bulk; the other sections shrink with it")
    parser.add_argument(
        "--minutes",
        type=_lengths,
        default=[2.0],
        help="fresh: length of each window, like 60,10; the last for the rest",
    )
    parser.add_argument("--state", type=int, default=0, metavar="KEYS", help="fresh: fill bronze's state first")
    parser.add_argument("--order", default="ABBA", help="fresh: A is headrace, B by hand; one window each")
    parser.add_argument("--memory", default="", help="the engine's memory, when not the environment's")
    parser.add_argument("--directory", type=Path, help="where the temporary directory goes")
    parser.add_argument("-o", dest="output", nargs=2, metavar=("json", "FILE"), help="write all facts to a file")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.sections if name not in SECTIONS + ON_DEMAND]
    if unknown:
        parser.error(f"no section {unknown[0]!r}: there are {', '.join(SECTIONS + ON_DEMAND)}")
    if not arguments.order or set(arguments.order) != {"A", "B"}:
        parser.error("--order is made of both A and B, like ABBA")
    if arguments.output:
        if arguments.output[0] != "json":
            parser.error("-o writes json FILE")
        arguments.output[1] = Path(arguments.output[1]).absolute()
    return arguments


if __name__ == "__main__":
    main()
