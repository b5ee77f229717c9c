"""What a task needs on this machine: a directory, its wheels, and local paths for workspace and volume paths."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from headrace.release.manifest import MANIFEST
from headrace.testing.workspace.http_messages import Document
from headrace.testing.workspace.workspace_paths import local_path

CONF = "conf"  # the parameter with the path of a bundle, and the configuration directory in the bundle


class TaskEnvironment:
    """Prepares the directories, wheels and parameters of tasks, in the directory of the workspace."""

    def __init__(self, workspace_directory: Path) -> None:
        self._directory = workspace_directory

    def run_directory(self, run_id: int) -> Path:
        """Return the directory of a task's run."""
        return self._directory / "runs" / str(run_id)

    def log_file(self, run_id: int) -> Path:
        """Return the file with the output of a task's run."""
        return self.run_directory(run_id) / "output.txt"

    def install_wheels(self, libraries: Iterable[str], site: Path) -> None:
        """Unpack wheels from the workspace or from volumes; later wheels overwrite files of earlier ones."""
        site.mkdir(parents=True)
        for library in libraries:
            with zipfile.ZipFile(local_path(library, self._directory)) as wheel:
                wheel.extractall(site)

    def local_parameters(self, parameters: Mapping[str, str], directory: Path) -> dict[str, str]:
        """Return named parameters, with workspace and volume paths replaced by local paths.

        The bundle that a parameter `conf` names is copied into `directory`, and the parameter names the copy.
        """
        translated = {name: local_path(str(value), self._directory) for name, value in parameters.items()}
        if CONF in parameters:
            translated[CONF] = str(self._copy_bundle(Path(translated[CONF]), directory / "releases"))
        return translated

    def local_arguments(self, arguments: Iterable[str]) -> list[str]:
        """Return positional parameters, with workspace and volume paths replaced by local paths."""
        return [local_path(str(argument), self._directory) for argument in arguments]

    def _copy_bundle(self, conf: Path, releases: Path) -> Path:
        """Copy a bundle into the directory `releases`, with local paths in its environment files. Return its path.

        `conf` is the bundle or its configuration directory; if it is neither, copy nothing and return `conf`. If the
        bundle is a release, add links to the releases beside it.
        """
        root = next((path for path in (conf, conf.parent) if (path / CONF / "pipelines").is_dir()), None)
        if root is None:
            return conf
        copy = releases / root.name
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns("*.whl"))
        for file in (copy / CONF).glob("*.yml"):
            environment = yaml.safe_load(file.read_text(encoding="utf-8"))
            if isinstance(environment, dict):
                translated = self._local_environment(environment)
                file.write_text(yaml.safe_dump(translated, sort_keys=False), encoding="utf-8")
        for manifest in root.parent.glob(f"*/{MANIFEST}"):
            if manifest.parent != root:
                (releases / manifest.parent.name).symlink_to(manifest.parent.resolve())
        return copy

    def _local_environment(self, environment: Document) -> Document:
        """Return the content of an environment file with local paths; a schema of a catalog becomes a directory."""
        translated: Document = self._local_values(environment)
        tables = translated.get("tables")
        if isinstance(tables, dict) and {"catalog", "schema"} <= set(tables):
            translated["tables"] = {
                "root": str(self._directory / "tables" / str(tables["catalog"]) / str(tables["schema"]))
            }
        return translated

    def _local_values(self, value: Any) -> Any:
        """Return the value with local paths, at any depth."""
        if isinstance(value, dict):
            return {key: self._local_values(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._local_values(item) for item in value]
        return local_path(value, self._directory) if isinstance(value, str) else value
