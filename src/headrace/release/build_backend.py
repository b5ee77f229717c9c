"""Child process that calls a build backend and reports which files of the bundle the backend read.

Called as `python -m headrace.release.build_backend BACKEND WHEEL_DIRECTORY` in the bundle. The last line on stdout is
the report as JSON: `name` of the wheel, empty if the build failed; `read` with the paths that were read; and
`external_link`, a path that was not read because it leads out of the bundle, empty if there is none. Only the backend
knows which files it packs, but it can pack only files that it opens.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from headrace.release.packing import PYTHON_CACHE, is_hidden, leads_out


class ReadRecorder:
    """Records the files of the bundle that are opened for reading, except files that a release never packs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.paths: set[str] = set()
        self.external_link = ""  # the last path that leads out of the bundle; empty if there was none

    def on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Record a file that Python opens for reading. This is an audit hook: see sys.addaudithook.

        If the file's path leads out of the bundle, raise PermissionError, which prevents Python from opening the file.
        """
        if event != "open" or not isinstance(arguments[0], str):
            return
        opens_for_writing = arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if opens_for_writing:
            return
        path = Path(os.path.abspath(arguments[0]))  # noqa: PTH100 - resolve() would follow links
        if not path.is_relative_to(self.root) or path.is_relative_to(sys.prefix):
            return  # not a file of the bundle; a virtual environment inside it may link to a package cache outside
        name = path.relative_to(self.root).as_posix()
        if is_hidden(name) or PYTHON_CACHE in path.parts:
            return
        if leads_out(self.root, path):
            self.external_link = name
            raise PermissionError(f"{name} is outside of the bundle")
        self.paths.add(name)


def main(backend: str, wheel_directory: str) -> None:
    """Build the wheel of the current directory. Print the report even if the build fails."""
    recorder = ReadRecorder(Path.cwd())
    sys.addaudithook(recorder.on_event)
    report: dict[str, Any] = {"name": ""}
    try:
        build_wheel: Callable[[str], str] = import_module(backend).build_wheel
        report["name"] = build_wheel(wheel_directory)
    finally:
        print(json.dumps({**report, "read": sorted(recorder.paths), "external_link": recorder.external_link}))


if __name__ == "__main__":
    main(*sys.argv[1:])
