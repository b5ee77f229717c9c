"""Plan a streaming query with Spark's own planner, without starting it.

Spark's class IncrementalExecution is internal: its arguments are those of 4.2. Callers have to expect that other
versions lack it, and that py4j then raises an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.signatures.plan_nodes import items, type_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EXECUTION = "org.apache.spark.sql.execution"
STATE_STORES = re.compile(
    r"StateStoreSave|SessionWindowStateStoreSave|StreamingDeduplicate|StreamingSymmetricHashJoin|"
    r"FlatMapGroups\w*WithState|TransformWithState|StreamingGlobalLimit"
)


def plan_batch(
    frame: DataFrame,
    output_mode: str,
    *,
    state: str = "<unknown>",
    batch: int = 0,
    settings: Mapping[str, str] | None = None,
    session: Any = None,
) -> Any:
    """Return Spark's IncrementalExecution of a batch of the query.

    With `session`, a session of the JVM, the batch is the first one after a restart: `executedPlan` then compares the
    query with the state's metadata in the directory `state`, and writes into this directory.
    """
    jvm: Any = frame.sparkSession._jvm
    in_jvm: Any = frame._jdf
    session_in_jvm: Any = frame.sparkSession._jsparkSession
    streaming = jvm.org.apache.spark.sql.execution.streaming
    maps = _module(jvm, "scala.collection.mutable.HashMap")
    converted = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(dict(settings or {}))
    return streaming.runtime.IncrementalExecution(
        session or session_in_jvm,
        in_jvm.queryExecution().analyzed(),
        getattr(jvm.org.apache.spark.sql.streaming.OutputMode, output_mode.capitalize())(),
        state,
        jvm.java.util.UUID.randomUUID(),  # of the query
        jvm.java.util.UUID.randomUUID(),  # of the run
        batch,
        _module(jvm, "scala.None"),  # no metadata of the previous batch
        streaming.checkpointing.OffsetSeqMetadata(0, 0, converted),
        _module(jvm, f"{EXECUTION}.streaming.runtime.NoOpWatermarkPropagator"),
        session is not None,  # the first batch of a run: the state's metadata is checked
        maps.empty(),
        maps.empty(),
        _module(jvm, f"{EXECUTION}.CommandExecutionMode").ALL(),
        False,
    )


def state_columns(frame: DataFrame, output_mode: str) -> list[tuple[str, ...]]:
    """Return for each stateful operator the column types of its inputs, from which its state is made.

    The types are those after Spark has removed unused columns. Return an empty list if Spark's internals differ.
    """
    from py4j.protocol import Py4JError

    try:
        return list(_state_inputs(plan_batch(frame, output_mode).sparkPlan()))
    except (AttributeError, TypeError, Py4JError):
        return []


def _state_inputs(plan: Any) -> Any:
    """Yield for each stateful operator the column types of its inputs, in the order of the state directories."""
    children = list(items(plan.children()))
    for child in children:
        yield from _state_inputs(child)
    if STATE_STORES.match(plan.nodeName()):
        yield tuple(", ".join(map(type_name, items(child.output()))) for child in children)


def _module(jvm: Any, name: str) -> Any:
    """Return the Scala object with this name, which is the only instance of its class."""
    return getattr(getattr(jvm, f"{name}$"), "MODULE$")
