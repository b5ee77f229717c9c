"""The directory for events and logs of runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from headrace.config.load import load_bundle

WriteBundle = Callable[[Mapping[str, str | bytes | None]], Path]


def test_events_and_logs_are_written_to_a_file_system(write_bundle: WriteBundle) -> None:
    cluster = "engine: {kind: spark, master: 'spark://m:1', releases: /srv/r}\ntables: {root: 's3://b/t'}\n"
    sources = "sources:\n  ticks: {kind: rate}\n  orders: {kind: rate}\n"
    directories = {"s3://b/c": "/srv/r/.headrace", "/mnt/c": "/mnt/c/.headrace"}
    for checkpoints, directory in directories.items():
        root = write_bundle({"conf/cluster.yml": f"{cluster}checkpoints: '{checkpoints}'\n{sources}"})
        assert str(load_bundle(root, "cluster").run_files_directory) == directory
