"""Compare the reference pipeline's tables with their expected rows, which DuckDB computes from the input tables."""

from __future__ import annotations

from pathlib import Path

import duckdb
from deltalake import DeltaTable

TABLES = ("bronze_orders", "bronze_orders_quarantine", "customers", "silver_orders", "gold_revenue")
BUCKET = "time_bucket(INTERVAL '1 minute', ordered_at)"
SILVER = "order_id, customer_id, ordered_at, quantity, unit_price, amount, name, country, segment"
ENRICHED = "SELECT b.*, c.name, c.country, c.segment FROM bronze_orders b LEFT JOIN customers c USING (customer_id)"


def open_tables(tables: Path) -> duckdb.DuckDBPyConnection:
    """Open the tables without Spark."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name in TABLES:
        connection.register(name, DeltaTable(str(tables / name)).to_pyarrow_table())
    return connection


def rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[tuple[object, ...]]:
    """Return the result of a query, sorted."""
    return sorted(connection.execute(query).fetchall(), key=str)


def difference(actual: str, expected: str) -> str:
    """Return a query for the rows that only one of two queries returns."""
    return f"(({actual}) EXCEPT ALL ({expected})) UNION ALL (({expected}) EXCEPT ALL ({actual}))"


def silver_difference() -> str:
    """Return a query for the unexpected and missing rows of silver."""
    return difference(f"SELECT {SILVER} FROM silver_orders", f"SELECT {SILVER} FROM ({ENRICHED})")


def gold_difference(watermark: str) -> str:
    """Return a query for the unexpected and missing rows of gold, for windows that end before the watermark."""
    expected = f"""
        SELECT {BUCKET} AS window_start, country, count(*) AS orders, sum(amount) AS revenue FROM silver_orders
        WHERE {BUCKET} + INTERVAL '1 minute' <= TIMESTAMPTZ '{watermark}' GROUP BY 1, 2
    """
    return difference("SELECT window_start, country, orders, revenue FROM gold_revenue", expected)


def customers_difference(files: Path) -> str:
    """Return a query for the unexpected and missing rows of customers: expected are the newest in the files."""
    newest = f"""
        SELECT customer_id, max_by(name, updated_at), max_by(country, updated_at), max_by(segment, updated_at),
               max(updated_at)
        FROM read_csv('{files}/*.csv') GROUP BY 1
    """
    return difference("SELECT customer_id, name, country, segment, updated_at FROM customers", newest)
