"""Remove what ended queries leave in this process and in the JVM: the follow loop starts 100,000 queries a day.

py4j keeps the connection over which a query's thread called Python, and the Python thread that serves it (py4j
0.10.9.9). Spark keeps a listener that a query with state has registered, and calls it with every event (Spark 4.2.0).
Without the cleanup, a batch took twice as long after twenty minutes: RocksDB forks a process to delete a directory, and
the child process closes every open file descriptor first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LISTENER = "StreamingQueryListenerBus"


class Py4jCleanup:
    """Removes everything that has appeared since this object was created."""

    def __init__(self, spark: SparkSession) -> None:
        self._context: Any = spark.sparkContext
        self._initial = {listener.hashCode() for listener in self._listeners()}

    def run(self) -> None:
        """Remove the listeners of queries, and connections that have not been used since the previous call.

        Running queries have such listeners too, but without anything that listens to them.
        """
        from py4j.java_gateway import JavaObject

        JavaObject("GATEWAY_SERVER", self._context._gateway._gateway_client).getCallbackClient().periodicCleanup()
        for listener in self._listeners():
            if listener.hashCode() not in self._initial:
                self._context._jsc.sc().listenerBus().removeListener(listener)

    def _listeners(self) -> list[Any]:
        """Return the listener buses of sessions; each query has a session of its own, whose bus has no listeners."""
        listeners = self._context._jsc.sc().listenerBus().listeners()
        return [listener for listener in listeners if listener.getClass().getSimpleName() == LISTENER]
