"""Child process that computes the signatures of a bundle's steps, in each of its environments.

Called as `python -m headrace.runtime.release_signatures DIRECTORY` with the bundle's directory. The last line on stdout
is the report as JSON. Its `environments` has environment -> pipeline -> step -> entry. An entry has the `signature`, or
`not_computed` with the reason. If Spark cannot be started, the report itself has `not_computed`.

Sources are replaced by empty ones and no table exists, so all schemas have to be declared.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.config.load import load_all
from headrace.config.models import (
    Bundle,
    Environment,
    FileSource,
    KafkaSource,
    LocalEngine,
    Source,
    Step,
    Tables,
    Topic,
)
from headrace.errors import ConfigurationError, HeadraceError, one_line
from headrace.graph import order
from headrace.runtime.prepare import pending_tables, prepare
from headrace.runtime.session_settings import session_settings
from headrace.runtime.step_query import ignore_counts, open_query, written_rows
from headrace.runtime.step_signature import require_signature
from headrace.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

NO_SERVERS = "127.0.0.1:1"  # Kafka servers to which nothing connects
Entries = dict[str, dict[str, dict[str, Any]]]  # pipeline -> step -> entry


def main(root: str) -> None:
    """Compute the signatures of the bundle in this directory, and print the report."""
    report: dict[str, Any] = {}
    try:
        report["environments"] = _compute_in_new_session(Path(root))
    except Exception as error:
        report["not_computed"] = _reason(error)
    print(json.dumps(report))


def compute(spark: SparkSession, bundles: Iterable[Bundle]) -> dict[str, Entries]:
    """Return the entries of all steps. `bundles` has the bundle for each environment."""
    computed: list[tuple[Environment, Entries]] = []
    environments = {}
    with tempfile.TemporaryDirectory(prefix="headrace-release-") as directory:
        for bundle in bundles:
            environment = _without_data(bundle.environment, directory)
            # Most environments differ only in their locations, and then their signatures are equal.
            entries = next((entries for other, entries in computed if other == environment), None)
            if entries is None:
                entries = _compute(spark, bundle, environment)
                computed.append((environment, entries))
            environments[bundle.environment.name] = entries
    return environments


def _compute_in_new_session(root: Path) -> dict[str, Entries]:
    """Return the entries of all steps, computed in a session of the bundle's local engine, or of a default one."""
    bundles = load_all(root)
    local = (bundle.environment for bundle in bundles if isinstance(bundle.environment.engine, LocalEngine))
    environment = next(local, None)
    engine = environment.engine if environment else LocalEngine(kind="local")
    # Transforms may need the jars in these settings. `_compute` sets those that can be changed while Spark runs.
    settings = {key: value for key, value in (environment.settings if environment else {}).items() if _is_static(key)}
    with tempfile.TemporaryDirectory(prefix="headrace-release-") as directory:
        spark = session.open_session(
            engine, name="signatures", directory=Path(directory), python_path=str(root / "src"), settings=settings
        )
        try:
            return compute(spark, bundles)
        finally:
            session.close_session(spark)


def _compute(spark: SparkSession, bundle: Bundle, environment: Environment) -> Entries:
    """Return the entries of the bundle's steps in an environment without data."""
    pending: dict[str, StructType] = {}  # the tables of the steps so far
    entries: Entries = {pipeline: {} for pipeline in bundle.pipelines}
    settings = {key: value for key, value in environment.settings.items() if spark.conf.isModifiable(key)}
    for locations, step in order.all_steps(bundle):
        pipeline = Path(locations.file).stem
        try:
            _require_known_schemas(step, pending)
            with session_settings(spark, {**settings, **step.settings}):
                entries[pipeline][step.name] = _compute_entry(spark, step, environment, pending)
        except Exception as error:  # user code may raise anything
            entries[pipeline][step.name] = {"not_computed": _reason(error)}
    return entries


def _compute_entry(
    spark: SparkSession, step: Step, environment: Environment, pending: dict[str, StructType]
) -> dict[str, Any]:
    """Return the entry of a step, and add the tables that it writes to `pending`. Raise any error."""
    ready = prepare(spark, step, environment, on_counts=ignore_counts(step.name), pending=pending)
    pending |= pending_tables(spark, ready, environment)
    signature = ready.signature
    if signature is None:  # raise the error that `prepare` has ignored
        query = open_query(spark, step, environment, on_counts=ignore_counts(step.name), pending=pending)
        signature = require_signature(spark, step, query.inputs, partial(written_rows, step))
    return {"signature": signature.to_json()}


def _require_known_schemas(step: Step, pending: Mapping[str, StructType]) -> None:
    """Raise ConfigurationError if the schema of an input is known only where its data is."""
    for name, read in step.reads.items():
        fix = "a run computes the signature"
        if read.infer:
            raise ConfigurationError(f"the schema of input {name!r} is inferred from its data", fix=fix)
        if read.table is not None and read.table not in pending:
            raise ConfigurationError(
                f"the schema of table {read.table!r} is not known before the table exists", fix=fix
            )


def _without_data(environment: Environment, directory: str) -> Environment:
    """Return an environment with the same kinds of sources and the same settings, but without any data or location."""
    return Environment(
        name="",
        engine=LocalEngine(kind="local"),
        tables=Tables(root=f"{directory}/tables"),
        checkpoints=f"{directory}/checkpoints",
        sources={name: _empty_source(source, directory) for name, source in environment.sources.items()},
        topics={name: Topic(servers=NO_SERVERS, topic=name) for name in environment.topics},
        folders={name: f"{directory}/folders/{name}" for name in environment.folders},
        settings=environment.settings,
    )


def _empty_source(source: Source, directory: str) -> Source:
    """Return a source of the same kind and format without rows. It needs no secrets, because nothing is read."""
    if isinstance(source, FileSource):
        files = Path(directory, "files")
        files.mkdir(exist_ok=True)
        return source.model_copy(update={"path": str(files)})
    if isinstance(source, KafkaSource):
        blank = {"servers": NO_SERVERS, "topics": ("none",), "pattern": None, "security": None}
        return source.model_copy(update=blank)
    return source


def _is_static(key: str) -> bool:
    return not key.startswith("spark.sql.") or key == "spark.sql.extensions"


def _reason(error: Exception) -> str:
    return error.problems[0].message if isinstance(error, HeadraceError) else one_line(error)


if __name__ == "__main__":
    main(sys.argv[1])
