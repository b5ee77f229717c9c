"""Estimate whether a run has so much to read that Java's optimising compiler (C2) pays off.

A bounded run over few rows ends sooner with Java's quick compiler (C1) alone: 100,000 orders through three layers took
9.5 s instead of 12.7 s. With C2 and the parallel garbage collector, 10,000,000 orders took 82 s instead of 158.8 s
(2 cores, Spark 4.2.0).
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Sequence
from pathlib import Path

from headrace.config.models import Bundle, FileSource, KafkaSource, Step, local_path
from headrace.io.delta.delta_table import table_of
from headrace.runtime.events import Event, read_events
from headrace.runtime.lag import count_files_read, list_files
from headrace.runtime.step_checkpoint import open_checkpoint

LARGE_BYTES = 64 << 20  # size of unread files; about 400,000 orders as JSON
LARGE_RECORDS = 400_000


def is_large(bundle: Bundle, pipeline: str, steps: Sequence[Step]) -> bool:
    """Return whether the steps have so much to read that the optimising compiler pays off.

    Return True if a file source, a table at a path or the checkpoints are not on this machine's disk, or if a step
    reads Kafka and has no recorded batches. Static inputs, tables in a catalog, other kinds of sources and tables that
    the steps themselves write are not counted.
    """
    environment = bundle.environment
    written = {table for step in steps for table in step.tables_written}
    unread_bytes = 0
    for step in steps:
        inputs = [read for read in step.reads.values() if not read.static]
        sources = [environment.sources[read.source] for read in inputs if read.source]
        reads_kafka = any(isinstance(source, KafkaSource) for source in sources)
        if reads_kafka and _expected_records(bundle.run_files_directory, pipeline, step.name) > LARGE_RECORDS:
            return True
        file_paths = [source.path for source in sources if isinstance(source, FileSource)]
        tables = [table_of(environment, str(read.table)) for read in inputs if read.table and read.table not in written]
        table_paths = [table.location for table in tables if table.by_path]
        is_all_local = all(local_path(path) for path in [*file_paths, *table_paths, environment.checkpoints])
        if not is_all_local:
            return True
        checkpoint = Path(local_path(open_checkpoint(bundle, pipeline, step.name).spark_directory))
        unread_bytes += _unread_file_bytes(file_paths, checkpoint)
        unread_bytes += _unread_table_bytes([Path(local_path(path)) for path in table_paths], checkpoint)
    return unread_bytes > LARGE_BYTES


def _unread_file_bytes(paths: Iterable[str], checkpoint: Path) -> int:
    """Return an estimate of the unread bytes: the size of all files times the share of unread files.

    If the size of all files is at most LARGE_BYTES, return this size without reading the log of files read. Return 0
    if the log cannot be read or is too long.
    """
    sizes = [_size(Path(file)) for path in paths for file in _files(path)]
    if sum(sizes) <= LARGE_BYTES:
        return sum(sizes)
    try:
        files_read = sum(count_files_read(log) for log in checkpoint.glob("sources/*"))
    except OSError:  # the log cannot be read
        return 0
    except ValueError:  # the log is so long that the step must have read most files
        return 0
    return sum(sizes) * max(0, len(sizes) - files_read) // len(sizes)


def _unread_table_bytes(tables: Iterable[Path], checkpoint: Path) -> int:
    """Return the size of the data files that are newer than the step's last batch; of all files without a batch."""
    last_batch_ns = max((file.stat().st_mtime_ns for file in checkpoint.glob("commits/[0-9]*")), default=0)
    files = [file for table in tables for file in table.rglob("*.parquet") if "_delta_log" not in file.parts]
    return sum(_size(file) for file in files if file.stat().st_mtime_ns > last_batch_ns)


def _expected_records(directory: Path, pipeline: str, step: str) -> float:
    """Return how many records the step read in its last recorded run, plus its lag after that.

    Return infinity if no batch of the step is recorded.
    """
    runs: dict[str, list[Event]] = {}
    for event in read_events(directory, pipeline):
        if event.step == step and event.what == "batch":
            runs.setdefault(event.run, []).append(event)
    if not runs:
        return float("inf")
    last = list(runs.values())[-1]
    return sum(event.rows for event in last) + sum(last[-1].lag.values())


def _files(path: str) -> list[str]:
    """Return the files of a source's path, which may be a glob pattern."""
    root = local_path(path)
    files: list[str] = []
    for match in glob.glob(root):  # noqa: PTH207, the pattern may be absolute
        files += list_files(Path(match)) if Path(match).is_dir() else [match]
    return files


def _size(file: Path) -> int:
    """Return the size of a file; 0 if the file does not exist."""
    try:
        return file.stat().st_size
    except OSError:  # the file is a broken link, or was just deleted
        return 0
