"""Pairs of queries, and the verdict on the change from one to the other: the cases of `test_compare`."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupStateTimeout
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from headrace.signatures.changes import Verdict
from signature_queries import aggregate, deduplicate, deduplicate_within_watermark, join, sessions, windows

SAFE, NEW_ROWS, UNKNOWN = Verdict.SAFE, Verdict.SAFE_FOR_NEW_ROWS, Verdict.UNKNOWN
NEW_GENERATION, WRONG = Verdict.NEEDS_NEW_GENERATION, Verdict.WRONG_ROWS


def plus(number):
    return F.udf(lambda value: None if value is None else value + number, "double")


def times(number):
    return F.pandas_udf(lambda values: values * number, "double")


def count_rows(
    state_type="count INT", timeout=GroupStateTimeout.NoTimeout, start=0, output="customer STRING, rows INT"
):
    def count(key, frames, state):
        rows = state.get[0] if state.exists else start
        state.update((rows + sum(map(len, frames)),))
        yield pd.DataFrame({"customer": [key[0]], "rows": [rows]})

    return lambda inputs: inputs.orders.groupBy("customer").applyInPandasWithState(
        count, output, state_type, "update", timeout
    )


class Counter(StatefulProcessor):
    state_type = "count INT"

    def __init__(self, step=1):
        self.step = step

    def init(self, handle):
        self.count = handle.getValueState("count", self.state_type)

    def handleInputRows(self, key, rows, timers):  # noqa: N802 (Spark's name)
        for _ in rows:
            yield pd.DataFrame({"customer": [key[0]]})

    def close(self):
        pass


class OtherBody(Counter):
    def handleInputRows(self, key, rows, timers):  # noqa: N802
        for _ in rows:
            yield pd.DataFrame({"customer": [key[0].upper()]})


class OtherState(Counter):
    state_type = "count STRING"


class AnotherVariable(Counter):
    def init(self, handle):
        super().init(handle)
        self.last = handle.getValueState("last", "at TIMESTAMP")


def process(processor, interface="InPandas"):
    def query(inputs):
        groups = inputs.orders.groupBy("customer")
        return getattr(groups, f"transformWithState{interface}")(processor, "customer STRING", "Update", "None")

    return query


def total_of(function, number):
    return lambda inputs: inputs.orders.groupBy("customer").agg(F.sum(function(number)("amount")).alias("total"))


def total(inputs):
    return inputs.orders.groupBy("customer").agg(F.sum("amount").alias("total"))


# Queries: name, old, new, the worst verdict (None: no change), and the path of that change.
QUERIES = [
    # Projections
    (
        "projections split and reordered",
        lambda i: i.orders.select("id", (F.col("amount") * 2 + 1).alias("x"), "at"),
        lambda i: (
            i.orders.select("at", "id", (F.col("amount") * 2).alias("y")).withColumn("x", F.col("y") + 1).drop("y")
        ),
        None,
        "",
    ),
    (
        "alias inside",
        lambda i: i.orders.select("id"),
        lambda i: i.orders.selectExpr("id AS k").selectExpr("k AS id"),
        None,
        "",
    ),
    ("projection added", lambda i: i.orders.select("id"), lambda i: i.orders.select("id", "fee"), NEW_ROWS, "output"),
    ("projection removed", lambda i: i.orders, lambda i: i.orders.drop("fee"), NEW_ROWS, "output"),
    (
        "formula",
        lambda i: i.orders.selectExpr("amount + fee AS x"),
        lambda i: i.orders.selectExpr("amount - fee AS x"),
        NEW_ROWS,
        "output.x",
    ),
    (
        "udf body",
        lambda i: i.orders.select(plus(1)("amount").alias("x")),
        lambda i: i.orders.select(plus(2)("amount").alias("x")),
        NEW_ROWS,
        "output.x",
    ),
    (
        "pandas udf body",
        lambda i: i.orders.select(times(1)("amount").alias("x")),
        lambda i: i.orders.select(times(2)("amount").alias("x")),
        NEW_ROWS,
        "output.x",
    ),
    (
        "udf",
        lambda i: i.orders.select(plus(1)("amount").alias("x")),
        lambda i: i.orders.select(plus(1)("amount").alias("x")),
        None,
        "",
    ),
    (
        "stateless filter",
        lambda i: i.orders.where("amount > 1"),
        lambda i: i.orders.where("amount > 2"),
        NEW_ROWS,
        "filters",
    ),
    (
        "rows exploded",
        lambda i: i.orders.select("id", F.lit("a,b").alias("v")),
        lambda i: i.orders.select("id", F.explode(F.split("customer", ",")).alias("v")),
        NEW_ROWS,
        "others",
    ),
    # Static inputs
    (
        "static join unchanged",
        lambda i: i.orders.join(i.customers, "customer", "left"),
        lambda i: i.orders.join(i.customers, "customer", "left"),
        None,
        "",
    ),
    (
        "static table",
        lambda i: i.orders.join(i.customers, "customer"),
        lambda i: i.orders.join(i.clients, "customer"),
        NEW_ROWS,
        "static_inputs",
    ),
    (
        "static join type",
        lambda i: i.orders.join(i.customers, "customer", "left"),
        lambda i: i.orders.join(i.customers, "customer"),
        NEW_ROWS,
        "joins",
    ),
    (
        "filter of a static table",
        lambda i: i.orders.join(i.customers.where("country = 'DE'"), "customer"),
        lambda i: i.orders.join(i.customers.where("country = 'FR'"), "customer"),
        NEW_ROWS,
        "filters",
    ),
    (
        "filter in a subquery",
        lambda i: i.orders.join(i.customers.where("country = 'DE'"), "customer", "left_semi"),
        lambda i: i.orders.join(i.customers.where("country = 'FR'"), "customer", "left_semi"),
        NEW_ROWS,
        "filters",
    ),
    # Sources
    (
        "source added",
        lambda i: i.orders.select("id"),
        lambda i: i.orders.select("id").union(i.returns.select("return_id")),
        NEW_GENERATION,
        "sources",
    ),
    (
        "source removed",
        lambda i: i.orders.select("id").union(i.returns.select("return_id")),
        lambda i: i.orders.select("id"),
        NEW_GENERATION,
        "sources",
    ),
    (
        "sources swapped",
        lambda i: i.orders.select("id").union(i.returns.select("return_id")),
        lambda i: i.returns.selectExpr("return_id AS id").union(i.orders.select("id")),
        NEW_GENERATION,
        "sources",
    ),
    (
        "branches of a union have other filters",
        lambda i: i.orders.where("n = 1").select(F.lit("a")).union(i.orders.where("n = 2").select(F.lit("b"))),
        lambda i: i.orders.where("n = 2").select(F.lit("a")).union(i.orders.where("n = 1").select(F.lit("b"))),
        NEW_ROWS,
        "filters",
    ),
    # Deduplication
    ("dedup unchanged", deduplicate_within_watermark("id"), deduplicate_within_watermark("id"), None, ""),
    ("dedup key swapped", deduplicate("id"), deduplicate("customer"), WRONG, "stateful[0].keys"),
    ("dedup key type", deduplicate("id"), deduplicate("n"), NEW_GENERATION, "stateful[0].keys"),
    (
        "dedup key cast",
        lambda i: i.timed.dropDuplicates(["n"]),
        lambda i: i.timed.withColumn("n", F.col("n").cast("string")).dropDuplicates(["n"]),
        NEW_GENERATION,
        "stateful[0].keys",
    ),
    ("dedup key added", deduplicate("id"), deduplicate("id", "customer"), NEW_GENERATION, "stateful[0].keys"),
    ("dedup keys reordered", deduplicate("id", "customer"), deduplicate("customer", "id"), WRONG, "stateful[0].keys"),
    (
        "dedup key renamed",
        lambda i: i.timed.dropDuplicates(["id"]).selectExpr("id AS key", "at"),
        lambda i: i.timed.selectExpr("id AS key", "at").dropDuplicates(["key"]),
        SAFE,
        "stateful[0].keys",
    ),
    (
        "dedup to within watermark",
        deduplicate("id"),
        deduplicate_within_watermark("id"),
        NEW_GENERATION,
        "stateful[0].kind",
    ),
    (
        "within watermark key swapped",
        deduplicate_within_watermark("id"),
        deduplicate_within_watermark("customer"),
        WRONG,
        "stateful[0].keys",
    ),
    ("dedup removed", deduplicate("id"), lambda i: i.timed, NEW_GENERATION, "stateful"),
    ("dedup added", lambda i: i.timed, deduplicate("id"), NEW_GENERATION, "stateful"),
    (
        "dedup filter added",
        deduplicate("id"),
        lambda i: i.timed.where("n > 1").dropDuplicates(["id"]),
        NEW_ROWS,
        "filters",
    ),
    (
        "dedup filter changed",
        lambda i: i.timed.where("n > 2").dropDuplicates(["id"]),
        lambda i: i.timed.where("n > 1").dropDuplicates(["id"]),
        NEW_ROWS,
        "filters",
    ),
    ("limit added", lambda i: i.orders, lambda i: i.orders.limit(5), NEW_GENERATION, "stateful"),
    ("limit changed", lambda i: i.orders.limit(4), lambda i: i.orders.limit(5), NEW_ROWS, "stateful[0].rows"),
    (
        "dedup filter moved",
        lambda i: i.timed.where("n > 1").dropDuplicates(["id"]),
        lambda i: i.timed.dropDuplicates(["id"]).where("n > 1"),
        NEW_ROWS,
        "filters",
    ),
    (
        "agg to dedup",
        aggregate("sum(amount)"),
        lambda i: i.orders.dropDuplicates(["customer"]),
        NEW_GENERATION,
        "stateful[0].kind",
    ),
    # Aggregations
    ("agg unchanged", aggregate("sum(amount)"), aggregate("sum(amount)"), None, ""),
    ("sum to max", aggregate("sum(amount)"), aggregate("max(amount)"), WRONG, "stateful[0].aggregates"),
    ("agg input", aggregate("sum(amount)"), aggregate("sum(fee)"), WRONG, "stateful[0].aggregates"),
    (
        "aggs swapped",
        aggregate("sum(amount)", "sum(fee)"),
        aggregate("sum(fee)", "sum(amount)"),
        WRONG,
        "stateful[0].aggregates",
    ),
    ("sum to avg", aggregate("sum(amount)"), aggregate("avg(amount)"), NEW_GENERATION, "stateful[0].aggregates"),
    (
        "agg added",
        aggregate("sum(amount)"),
        aggregate("sum(amount)", "max(fee)"),
        NEW_GENERATION,
        "stateful[0].aggregates",
    ),
    (
        "agg removed",
        aggregate("sum(amount)", "max(fee)"),
        aggregate("sum(amount)"),
        NEW_GENERATION,
        "stateful[0].aggregates",
    ),
    (
        "group key swapped",
        aggregate("sum(amount)", by=("customer",)),
        aggregate("sum(amount)", by=("region",)),
        WRONG,
        "stateful[0].keys",
    ),
    (
        "group keys reordered",
        aggregate("sum(amount)", by=("customer", "region")),
        aggregate("sum(amount)", by=("region", "customer")),
        WRONG,
        "stateful[0].keys",
    ),
    (
        "group key added",
        aggregate("sum(amount)"),
        aggregate("sum(amount)", by=("customer", "region")),
        NEW_GENERATION,
        "stateful[0].keys",
    ),
    ("filter before agg", total, lambda i: total(SimpleNamespace(orders=i.orders.where("n > 1"))), NEW_ROWS, "filters"),
    ("filter after agg", total, lambda i: total(i).where("total > 1"), NEW_ROWS, "filters"),
    ("agg alias", total, lambda i: total(i).withColumnRenamed("total", "sum"), NEW_ROWS, "output"),
    ("udf in an aggregate", total_of(plus, 1), total_of(plus, 2), WRONG, "stateful[0].aggregates"),
    # Windows and watermarks
    ("window unchanged", windows("15 minutes"), windows("900 seconds"), None, ""),
    ("window size", windows("15 minutes"), windows("5 minutes"), WRONG, "stateful[0].keys"),
    ("window slide added", windows("15 minutes"), windows("15 minutes", "5 minutes"), WRONG, "stateful[0].keys"),
    ("window offset", windows("15 minutes"), windows("15 minutes", offset="2 minutes"), WRONG, "stateful[0].keys"),
    ("session gap", sessions("5 minutes"), sessions("10 minutes"), WRONG, "stateful[0].keys"),
    ("session unchanged", sessions("5 minutes"), sessions("300 seconds"), None, ""),
    (
        "watermark and window column",
        windows("15 minutes"),
        windows("15 minutes", time="seen_at"),
        WRONG,
        "watermarks[0].column",
    ),
    (
        "watermark delay",
        lambda i: i.orders.withWatermark("at", "10 minutes").dropDuplicates(["id", "at"]),
        lambda i: i.orders.withWatermark("at", "20 minutes").dropDuplicates(["id", "at"]),
        SAFE,
        "watermarks[0].delay",
    ),
    (
        "watermark delay in another unit",
        lambda i: i.orders.withWatermark("at", "10 minutes").dropDuplicates(["id", "at"]),
        lambda i: i.orders.withWatermark("at", "600 seconds").dropDuplicates(["id", "at"]),
        None,
        "",
    ),
    ("watermark removed", deduplicate("id"), lambda i: i.orders.dropDuplicates(["id"]), NEW_ROWS, "watermarks"),
    # Joins of two streams
    ("join unchanged", join(), join(), None, ""),
    ("join inner to left", join(), join(how="left"), NEW_GENERATION, "stateful[0].type"),
    (
        "join key",
        join(),
        join(condition="id = return_id AND returned_at BETWEEN at AND at + INTERVAL 1 HOUR"),
        WRONG,
        "stateful[0].keys",
    ),
    (
        "join key order",
        join(condition="id = order_id AND customer = buyer"),
        join(condition="customer = buyer AND id = order_id"),
        WRONG,
        "stateful[0].keys",
    ),
    (
        "join time range",
        join(),
        join(condition="id = order_id AND returned_at BETWEEN at AND at + INTERVAL 2 HOURS"),
        WRONG,
        "stateful[0].condition",
    ),
    (
        "column in join state",
        join(),
        join(columns=("id", "at", "returned_at", "customer", "buyer", "reason")),
        NEW_GENERATION,
        "stateful[0].state_columns",
    ),
    # State functions
    ("state function unchanged", count_rows(), count_rows(), None, ""),
    ("state function body", count_rows(), count_rows(start=1), UNKNOWN, "stateful[0].code"),
    (
        "state function's state",
        count_rows(),
        count_rows(state_type="count STRING"),
        NEW_GENERATION,
        "stateful[0].state",
    ),
    (
        "state function's timeout",
        count_rows(),
        count_rows(timeout=GroupStateTimeout.ProcessingTimeTimeout),
        NEW_GENERATION,
        "stateful[0].timeout",
    ),
    (
        "state function's output",
        count_rows(),
        count_rows(output="customer STRING, rows STRING"),
        NEW_ROWS,
        "stateful[0].output",
    ),
    ("processor unchanged", process(Counter()), process(Counter()), None, ""),
    ("processor body", process(Counter()), process(OtherBody()), UNKNOWN, "stateful[0].code"),
    ("processor setting", process(Counter()), process(Counter(step=2)), UNKNOWN, "stateful[0].settings"),
    ("processor's state variable added", process(Counter()), process(AnotherVariable()), UNKNOWN, "stateful[0].code"),
    ("processor's state type", process(Counter()), process(OtherState()), NEW_GENERATION, "stateful[0].state"),
    (
        "processor's interface",
        process(Counter()),
        process(Counter(), interface=""),
        NEW_GENERATION,
        "stateful[0].interface",
    ),
]
