"""What a task finds on this machine: its wheels unpacked, its bundle's configuration moved to the store's places."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from headrace.testing.workspace.http_messages import Document
from headrace.testing.workspace.workspace_paths import local_path

CONF = "conf"  # the parameter that names a bundle, and the directory in it that holds the configuration


class Places:
    """The directory of each task's run in the store, and the way of the platform's paths into the store."""

    def __init__(self, store: Path) -> None:
        self._store = store

    def of(self, run_id: int) -> Path:
        """The directory of a task's run."""
        return self._store / "runs" / str(run_id)

    def log(self, run_id: int) -> Path:
        """What a task has printed."""
        return self.of(run_id) / "output.txt"

    def install(self, libraries: Iterable[str], site: Path) -> None:
        """Unpacks wheels of the workspace or of a volume, one over the other."""
        site.mkdir(parents=True)
        for library in libraries:
            with zipfile.ZipFile(local_path(library, self._store)) as wheel:
                wheel.extractall(site)

    def parameters(self, given: Mapping[str, str], directory: Path) -> dict[str, str]:
        """A task's parameters with paths of this machine; the configuration that `conf` names is moved."""
        moved = {name: local_path(str(value), self._store) for name, value in given.items()}
        if CONF in given:
            moved[CONF] = str(self._move_bundle(Path(moved[CONF]), directory / "bundle"))
        return moved

    def texts(self, given: Iterable[str]) -> list[str]:
        """Parameters without names, with paths of this machine."""
        return [local_path(str(text), self._store) for text in given]

    def _move_bundle(self, given: Path, to: Path) -> Path:
        """Copies the bundle around a directory, with each environment's places in the store."""
        root = next((each for each in (given, given.parent) if (each / CONF / "pipelines").is_dir()), None)
        if root is None:
            return given
        shutil.copytree(root, to, ignore=shutil.ignore_patterns("*.whl"))
        for file in (to / CONF).glob("*.yml"):
            environment = yaml.safe_load(file.read_text(encoding="utf-8"))
            if isinstance(environment, dict):
                file.write_text(yaml.safe_dump(self._moved(environment), sort_keys=False), encoding="utf-8")
        return to

    def _moved(self, environment: Document) -> Document:
        moved: Document = self._texts(environment)
        tables = moved.get("tables")
        if isinstance(tables, dict) and {"catalog", "schema"} <= set(tables):
            moved["tables"] = {"root": str(self._store / "tables" / str(tables["catalog"]) / str(tables["schema"]))}
        return moved

    def _texts(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._texts(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self._texts(part) for part in value]
        return local_path(value, self._store) if isinstance(value, str) else value
