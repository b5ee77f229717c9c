"""The child process that calls a build backend, and reports which files of the bundle it read.

python -m headrace.backend BACKEND DIRECTORY, started in the bundle. The last line on stdout is the report, as JSON:
the name of the wheel, the paths that were read, and the path that was refused because a link to it leads out of the
bundle. Only the backend knows which files it packs; nothing but the files that it opens can be in the wheel.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from headrace.release.packing import CACHE, is_hidden, leads_out


class Reads:
    """The files of the bundle that were opened for reading, without those that are never packed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.paths: set[str] = set()
        self.refused = ""

    def on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Record what Python opens; an audit hook, see sys.addaudithook."""
        if event != "open" or not isinstance(arguments[0], str) or arguments[2] & (os.O_WRONLY | os.O_RDWR):
            return
        path = Path(os.path.abspath(arguments[0]))  # noqa: PTH100 - keeps the links in it
        if not path.is_relative_to(self.root) or path.is_relative_to(sys.prefix):
            return  # an environment in the bundle may consist of links to a cache of packages
        name = path.relative_to(self.root).as_posix()
        if is_hidden(name) or CACHE in path.parts:
            return
        if leads_out(self.root, path):  # before a byte of it is read: it may be all of the disk
            self.refused = name
            raise PermissionError(f"{name} is outside of the bundle")
        self.paths.add(name)


def main(backend: str, directory: str) -> None:
    """Build the wheel of the current directory, and print the report, also when the build fails."""
    reads = Reads(Path.cwd())
    sys.addaudithook(reads.on_event)
    report: dict[str, Any] = {"name": ""}
    try:
        build_wheel: Callable[[str], str] = import_module(backend).build_wheel
        report["name"] = build_wheel(directory)
    finally:
        print(json.dumps({**report, "read": sorted(reads.paths), "refused": reads.refused}))


if __name__ == "__main__":
    main(*sys.argv[1:])
