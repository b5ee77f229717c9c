"""Queries over empty inputs, and their signatures, for the tests of signatures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headrace.signatures.compute import compute_signature
from headrace.signatures.empty_inputs import empty_static, empty_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headrace.signatures.signature import Signature

ORDER = "id STRING, customer STRING, region STRING, at TIMESTAMP, seen_at TIMESTAMP, amount DOUBLE, fee DOUBLE, n INT"
RETURN = "return_id STRING, order_id STRING, buyer STRING, returned_at TIMESTAMP, reason STRING"
CUSTOMER = "customer STRING, country STRING, segment STRING"
READS = {
    "orders": {"kind": "table", "name": "table orders"},
    "returns": {"kind": "table", "name": "table returns"},
    "customers": {"kind": "table", "name": "table customers"},
    "clients": {"kind": "table", "name": "table clients"},
}
GOLD = {"kind": "table", "name": "gold", "mode": "upsert", "keys": ["id"], "sequence": "at", "partition_by": []}


@dataclass(frozen=True)
class Inputs:
    """The inputs of a query: streams with the watermark that the configuration sets, and static inputs."""

    orders: DataFrame
    returns: DataFrame
    customers: DataFrame
    clients: DataFrame

    @property
    def timed(self) -> DataFrame:
        return self.orders.withWatermark("at", "10 minutes")

    @property
    def timed_returns(self) -> DataFrame:
        return self.returns.withWatermark("returned_at", "10 minutes")


Query = Callable[[Inputs], "DataFrame"]


def empty_inputs(spark: SparkSession, directory: Path) -> Inputs:
    """Return empty inputs below a temporary directory."""
    location = str(directory / "empty")
    schemas = {name: StructType.fromDDL(ddl) for name, ddl in (("orders", ORDER), ("returns", RETURN))}
    streams = {name: empty_stream(spark, name, schema, location) for name, schema in schemas.items()}
    customer = StructType.fromDDL(CUSTOMER)
    statics = {name: empty_static(spark, name, customer, location) for name in ("customers", "clients")}
    return Inputs(**streams, **statics)


def signature_of(frame: DataFrame, *, mode: str = "append", reads: Any = None, sinks: Any = (GOLD,)) -> Signature:
    return compute_signature(frame, output_mode=mode, inputs={**READS, **(reads or {})}, sinks=sinks)


# ── Queries with state ────────────────────────────────────────────────────────────────────────────────


def deduplicate(*keys: str) -> Query:
    return lambda inputs: inputs.timed.dropDuplicates(list(keys))


def deduplicate_within_watermark(*keys: str) -> Query:
    return lambda inputs: inputs.timed.dropDuplicatesWithinWatermark(list(keys))


def aggregate(*aggregates: str, by: tuple[str, ...] = ("customer",)) -> Query:
    return lambda inputs: inputs.orders.groupBy(*by).agg(*map(F.expr, aggregates))


def windows(size: str, slide: str | None = None, offset: str | None = None, time: str = "at") -> Query:
    def query(inputs: Inputs) -> DataFrame:
        window = F.window(time, size, slide or size, offset) if offset else F.window(time, size, slide)
        return inputs.orders.withWatermark(time, "10 minutes").groupBy(window, "region").agg(F.sum("amount"))

    return query


def sessions(gap: str) -> Query:
    return lambda inputs: inputs.timed.groupBy(F.session_window("at", gap), "region").agg(F.sum("amount"))


def join(
    condition: str = "id = order_id AND returned_at BETWEEN at AND at + INTERVAL 1 HOUR",
    how: str = "inner",
    columns: tuple[str, ...] = ("id", "at", "returned_at", "customer", "buyer"),
) -> Query:
    return lambda inputs: inputs.timed.join(inputs.timed_returns, F.expr(condition), how).select(*columns)
