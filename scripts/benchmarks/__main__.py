"""Run sections of the benchmark in a temporary directory, and print their figures."""

from __future__ import annotations

import argparse
import importlib
import json
import signal
import sys
import tempfile
from pathlib import Path

import machine
import process_cost
from figures import Section
from sandbox import FULL_ROWS, Sandbox

SECTIONS = ("start", "restart", "cold", "bulk", "batch", "quality", "fresh")
ON_DEMAND = ("large", "setup")  # run only if the command line names them


def main() -> None:
    """Run the sections that the command line names."""
    arguments = _arguments()
    machine_facts = machine.facts()
    print(machine.line(machine_facts), flush=True)
    if arguments.rows < FULL_ROWS:
        print(f"trial with --rows {arguments.rows:,}: the targets do not apply", flush=True)
    process_cost.adopt_orphans()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # clean up child processes
    sections: dict[str, Section] = {}
    with tempfile.TemporaryDirectory(prefix="headrace-bench-", dir=arguments.directory) as home:
        sandbox = Sandbox(
            home=Path(home),
            rows=arguments.rows,
            minutes=arguments.minutes,
            state_keys=arguments.state,
            order=arguments.order,
            memory=arguments.memory,
        )
        for name in arguments.sections or SECTIONS:
            sections[name] = importlib.import_module(name).measure(sandbox)
            print(f"\n{sections[name].text()}", flush=True)
            if arguments.output:
                facts = {
                    "machine": machine_facts,
                    "sections": {name: section.facts() for name, section in sections.items()},
                }
                arguments.output[1].write_text(json.dumps(facts, indent=2) + "\n")


def _minutes(text: str) -> list[float]:
    return [float(length) for length in text.split(",")]


def _arguments() -> argparse.Namespace:
    """Parse and check the command line; exit with an error if it is not valid."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    sections_help = f"by default all of {', '.join(SECTIONS)}; only if named: {', '.join(ON_DEMAND)}"
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=sections_help)
    parser.add_argument(
        "--rows", type=int, default=FULL_ROWS, help="rows of bulk; the other sections are scaled accordingly"
    )
    parser.add_argument(
        "--minutes",
        type=_minutes,
        default=[2.0],
        help="fresh: length of each window, such as 60,10; the last length applies to all further windows",
    )
    parser.add_argument("--state", type=int, default=0, metavar="KEYS", help="fresh: number of keys in bronze's state")
    parser.add_argument("--order", default="ABBA", help="fresh: one window per letter; A is headrace, B the baseline")
    parser.add_argument("--memory", default="", help="the engine's memory; by default as in conf/local.yml")
    parser.add_argument("--directory", type=Path, help="parent of the temporary directory")
    parser.add_argument("-o", dest="output", nargs=2, metavar=("json", "FILE"), help="write all facts to a file")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.sections if name not in SECTIONS + ON_DEMAND]
    if unknown:
        parser.error(f"unknown section {unknown[0]!r}: the sections are {', '.join(SECTIONS + ON_DEMAND)}")
    if not arguments.order or set(arguments.order) != {"A", "B"}:
        parser.error("--order must consist of A and B, such as ABBA")
    if arguments.output:
        if arguments.output[0] != "json":
            parser.error("the only output format is json: -o json FILE")
        arguments.output[1] = Path(arguments.output[1]).absolute()
    return arguments


if __name__ == "__main__":
    main()
