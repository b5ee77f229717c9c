"""What the reference pipeline's tables have to hold, as DuckDB finds it over the tables before them and the files."""

from __future__ import annotations

from pathlib import Path

import duckdb
from deltalake import DeltaTable

TABLES = ("bronze_orders", "bronze_orders_quarantine", "customers", "silver_orders", "gold_revenue")
BUCKET = "time_bucket(INTERVAL '1 minute', ordered_at)"
SILVER = "order_id, customer_id, ordered_at, quantity, unit_price, amount, name, country, segment"
ENRICHED = "SELECT b.*, c.name, c.country, c.segment FROM bronze_orders b LEFT JOIN customers c USING (customer_id)"


def opened(tables: Path) -> duckdb.DuckDBPyConnection:
    """The tables, read without Spark."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name in TABLES:
        connection.register(name, DeltaTable(str(tables / name)).to_pyarrow_table())
    return connection


def rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[tuple[object, ...]]:
    """What a query finds, in an order of its own."""
    return sorted(connection.execute(query).fetchall(), key=str)


def difference(one: str, other: str) -> str:
    """The rows that only one of two queries has."""
    return f"(({one}) EXCEPT ALL ({other})) UNION ALL (({other}) EXCEPT ALL ({one}))"


def silver_and_what_it_should_be() -> str:
    """The rows that silver has and should not, or should have and has not."""
    return difference(f"SELECT {SILVER} FROM silver_orders", f"SELECT {SILVER} FROM ({ENRICHED})")


def gold_and_what_it_should_be(closed: str) -> str:
    """The same of gold, for the windows that are closed at that watermark."""
    summed = f"""
        SELECT {BUCKET} AS window_start, country, count(*) AS orders, sum(amount) AS revenue FROM silver_orders
        WHERE {BUCKET} + INTERVAL '1 minute' <= TIMESTAMPTZ '{closed}' GROUP BY 1, 2
    """
    return difference("SELECT window_start, country, orders, revenue FROM gold_revenue", summed)


def customers_and_what_they_should_be(files: Path) -> str:
    """The same of the customers: the newest row of each in the files."""
    newest = f"""
        SELECT customer_id, max_by(name, updated_at), max_by(country, updated_at), max_by(segment, updated_at),
               max(updated_at)
        FROM read_csv('{files}/*.csv') GROUP BY 1
    """
    return difference("SELECT customer_id, name, country, segment, updated_at FROM customers", newest)
