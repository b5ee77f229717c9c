"""The shop's schemas, its rule for order amounts, and its revenue transform."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DecimalType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headrace.transforms.gold import Duration, aggregate_windows

MONEY = DecimalType(10, 2)

ORDER = StructType(
    [
        StructField("order_id", StringType()),
        StructField("customer_id", StringType()),
        StructField("ordered_at", TimestampType()),
        StructField("quantity", IntegerType()),
        StructField("unit_price", MONEY),
        StructField("amount", MONEY),
    ]
)

CUSTOMER = StructType(
    [
        StructField("customer_id", StringType()),
        StructField("name", StringType()),
        StructField("country", StringType()),
        StructField("segment", StringType()),
        StructField("updated_at", TimestampType()),
    ]
)


def amount_matches() -> Column:
    """Return the condition that the amount is the quantity times the unit price."""
    return F.col("amount") == F.col("quantity") * F.col("unit_price")


def revenue(orders: DataFrame, *, window: Duration) -> DataFrame:
    """Count orders and sum their amounts, per window and country."""
    return aggregate_windows(
        orders,
        time="ordered_at",
        window=window,
        by=["country"],
        aggregates={"orders": {"count": "*"}, "revenue": {"sum": "amount"}},
    )
