"""Recompute the signature of a step from its stored release.

After an upgrade of Headrace, Spark or Python, signatures cannot be compared with those of earlier versions. But all
releases of an environment are in one directory. So a deployed run computes the old signature again, with the old code.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.checkpoints.step_record import StepRecord
from headrace.config.models import Bundle, Step
from headrace.config.pipeline_files import read_pipelines
from headrace.runtime.session_settings import session_settings
from headrace.runtime.step_query import ignore_counts, open_query, written_rows
from headrace.runtime.step_signature import require_signature
from headrace.signatures.signature import VERSION_FIELDS, Signature

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANIFEST = "manifest.json"  # only releases have this file; a release's directory is named after the release's id
CONTENT_HASH = "+g"  # in the versions of the wheels that were built from a bundle's own code, and of Headrace's wheel


def release_of(bundle: Bundle) -> str:
    """Return the id of the release from which the bundle was loaded; empty if that is not a release."""
    root = Path(bundle.root)
    return root.name if (root / MANIFEST).is_file() else ""


def with_current_versions(spark: SparkSession, bundle: Bundle, record: StepRecord, new: Signature) -> StepRecord:
    """Return the record of a step's last start, with its signature recomputed if other versions have computed it.

    `new` is the signature of the step now. Return the record unchanged if the signature cannot be recomputed: the run
    or the last start was not of a release, the release was deleted, or its code fails with these versions.
    """
    if all(record.signature.get(name) == getattr(new, name) for name in VERSION_FIELDS):
        return record
    release = Path(bundle.root).parent / record.release
    if not record.release or not release_of(bundle) or not (release / MANIFEST).is_file():
        return record
    try:
        with _code_of(release):
            signature = _compute(spark, bundle, _read_step(release, record))
    except Exception:  # the code of the release may fail in any way
        return record
    return replace(record, signature=signature.to_json())


def _read_step(release: Path, record: StepRecord) -> Step:
    """Return the step as the release defines it. Raise an error if it is not valid in this version of Headrace."""
    drafts, _ = read_pipelines(release)
    (pipeline,) = (draft for draft in drafts if draft.name == record.pipeline)
    return pipeline.steps[record.step]


def _compute(spark: SparkSession, bundle: Bundle, step: Step) -> Signature:
    """Return the signature of a step of an earlier release. Its inputs have the schemas that they have now."""
    with session_settings(spark, step.settings):
        query = open_query(spark, step, bundle.environment, on_counts=ignore_counts(step.name))
        return require_signature(spark, step, query.inputs, partial(written_rows, step))


@contextmanager
def _code_of(release: Path) -> Iterator[None]:
    """Import the bundle's modules from the wheels of a release. At the end of the block, restore the current modules.

    Headrace itself and other packages stay as they are.
    """
    with tempfile.TemporaryDirectory(prefix="headrace-code-") as directory:
        for wheel in release.glob(f"wheels/*{CONTENT_HASH}*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(directory, [name for name in archive.namelist() if not name.startswith("headrace/")])
        packages = {path.stem for path in Path(directory).iterdir()}
        current = {name: sys.modules.pop(name) for name in _modules_of(packages)}
        sys.path.insert(0, directory)
        importlib.invalidate_caches()
        try:
            yield
        finally:
            sys.path.remove(directory)
            for name in _modules_of(packages):
                del sys.modules[name]
            sys.modules.update(current)
            importlib.invalidate_caches()


def _modules_of(packages: set[str]) -> list[str]:
    """Return the names of the imported modules of these packages."""
    return [name for name in sys.modules if name.partition(".")[0] in packages]
