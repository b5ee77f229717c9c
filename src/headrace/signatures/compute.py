"""Compute the signature of a query from its plan over empty inputs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headrace.signatures.incremental_plan import state_columns
from headrace.signatures.plan_reader import PlanReader
from headrace.signatures.signature import Operator, Signature

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MAX_FIELDS = "spark.sql.debug.maxToStringFields"


def compute_signature(
    result: DataFrame,
    *,
    output_mode: str,
    inputs: Mapping[str, Mapping[str, str]],
    sinks: Sequence[Mapping[str, object]],
) -> Signature:
    """Return the signature of a query that is not started.

    `result` is the query's frame over empty inputs (`empty_inputs`), on classic Spark: Spark Connect hides the plan.
    `inputs` has the kind and the name of what each input reads. `sinks` are stored as they are.
    """
    spark = result.sparkSession
    time_zone = str(spark.conf.get("spark.sql.session.timeZone"))
    reader = PlanReader(inputs, output_mode, time_zone)
    with _complete_plan_texts(spark):
        output = reader.read(_without_ctes(result))
        stateful = _with_state_columns(reader.stateful, result, output_mode)
    return Signature(
        sources=tuple(reader.leaves.sources),
        static_inputs=tuple(reader.leaves.static_inputs),
        stateful=tuple(stateful),
        watermarks=tuple(reader.watermarks),
        filters=tuple(reader.filters),
        joins=tuple(reader.joins),
        others=tuple(reader.others),
        output=tuple(output),
        output_mode=output_mode,
        sinks=tuple(json.loads(json.dumps([dict(sink) for sink in sinks], sort_keys=True))),
        time_zone=time_zone,
        ansi=str(spark.conf.get("spark.sql.ansi.enabled")).lower() == "true",
        spark=spark.version,
        python="{}.{}".format(*sys.version_info),
    )


@contextmanager
def _complete_plan_texts(spark: SparkSession) -> Iterator[None]:
    """Let Spark print all items of lists; by default it omits all after the 25th (4.2.0)."""
    before = spark.conf.get(MAX_FIELDS, None)
    spark.conf.set(MAX_FIELDS, "1000000")
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(MAX_FIELDS)
        else:
            spark.conf.set(MAX_FIELDS, before)


def _without_ctes(result: DataFrame) -> Any:
    """Return the analysed plan, in which each use of a common table expression is replaced by its definition."""
    in_jvm: Any = result._jdf
    plan = in_jvm.queryExecution().analyzed()
    if "WithCTE" not in plan.toString():
        return plan
    jvm: Any = result.sparkSession._jvm
    return jvm.org.apache.spark.sql.catalyst.optimizer.InlineCTE(True, False).apply(plan)


def _with_state_columns(operators: list[Operator], result: DataFrame, output_mode: str) -> list[Operator]:
    """Return the operators with the columns of their state.

    Return them unchanged if Spark's planner does not show the state of each operator.
    """
    columns = state_columns(result, output_mode) if operators else []
    if len(columns) != len(operators):
        return operators
    return [
        replace(operator, state_columns=types) if operator.kind in ("aggregate", "join") else operator
        for operator, types in zip(operators, columns, strict=True)
    ]
