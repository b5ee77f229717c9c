"""Remove connections and listener buses of ended queries, because the follow loop starts 100,000 queries a day.

For each ended query, py4j keeps the connection over which the query's thread called Python, and the Python thread that
serves this connection (py4j 0.10.9.9). For each query with state, Spark keeps a listener, the listener bus of the
query's session, and calls this bus with every event (Spark 4.2.0). Without the cleanup, a batch took twice as long
after twenty minutes: RocksDB forks a process to delete a directory, and this process first closes every open file
descriptor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LISTENER_BUS_CLASS = "StreamingQueryListenerBus"


class Py4jCleanup:
    """Removes unused connections of py4j, and those listener buses that were added after this object was created."""

    def __init__(self, spark: SparkSession) -> None:
        self._context: Any = spark.sparkContext
        self._initial = {bus.hashCode() for bus in self._listener_buses()}

    def run(self) -> None:
        """Remove the listener buses of queries, and connections that have not been used since the previous call.

        The buses of running queries are removed too. They are not needed, because they have no listeners.
        """
        from py4j.java_gateway import JavaObject

        JavaObject("GATEWAY_SERVER", self._context._gateway._gateway_client).getCallbackClient().periodicCleanup()
        for bus in self._listener_buses():
            if bus.hashCode() not in self._initial:
                self._context._jsc.sc().listenerBus().removeListener(bus)

    def _listener_buses(self) -> list[Any]:
        """Return the listener buses that sessions have added to Spark's own bus. Each query has its own session."""
        listeners = self._context._jsc.sc().listenerBus().listeners()
        return [listener for listener in listeners if listener.getClass().getSimpleName() == LISTENER_BUS_CLASS]
