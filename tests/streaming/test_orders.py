"""The reference pipeline over sample data: each row has exactly the fate that the sample's ledger tells."""

from __future__ import annotations

import csv
import json
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from deltalake import DeltaTable

from headrace.testing import PipelineRun, run_pipeline
from headrace_shop.sample import make_sample

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
BAD = ("malformed", "future", "refused")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("orders")


@pytest.fixture(scope="module")
def seed() -> int:
    """Another one each time; a failure names it."""
    return random.randrange(1_000_000)


@pytest.fixture(scope="module")
def ledger(place: Path, seed: int) -> list[dict[str, str]]:
    make_sample(place / "data", orders=100_000, customers=1000, files=20, seed=seed)
    with (place / "data" / "ledger.csv").open() as lines:
        return list(csv.DictReader(lines))


@pytest.fixture(scope="module")
def done(spark: SparkSession, place: Path, ledger: list[dict[str, str]]) -> PipelineRun:
    sources = {"orders": place / "data" / "orders", "customers": place / "data" / "customers"}
    return run_pipeline(spark, ROOT, "orders", place, sources=sources)


@pytest.fixture(scope="module")
def tables(done: PipelineRun, place: Path) -> duckdb.DuckDBPyConnection:
    """The tables, read without Spark."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name in ("bronze_orders", "bronze_orders_quarantine", "customers", "silver_orders", "gold_revenue"):
        connection.register(name, DeltaTable(str(place / "tables" / name)).to_pyarrow_table())
    return connection


def fate_of(reasons: list[str]) -> str:
    """What the ledger calls a row that was refused for these reasons."""
    if reasons == ["malformed"]:
        return "malformed"
    return "future" if "event time in the future" in reasons else "refused"


def test_each_row_has_the_fate_of_the_ledger(
    ledger: list[dict[str, str]], tables: duckdb.DuckDBPyConnection, place: Path, seed: int
) -> None:
    in_bronze = Counter(row[0] for row in tables.execute("SELECT order_id FROM bronze_orders").fetchall())
    quarantined = tables.execute("SELECT raw, reasons FROM bronze_orders_quarantine").fetchall()
    refused = Counter((raw, fate_of(reasons)) for raw, reasons in quarantined)
    lines = {
        (file.name, number): line
        for file in sorted((place / "data" / "orders").glob("*.json"))
        for number, line in enumerate(file.read_text().splitlines())
    }
    positions: Counter[str] = Counter()
    expected_refused: Counter[tuple[str, str]] = Counter()
    for entry in ledger:
        file = Path(entry["file"]).name
        raw = lines[(file, positions[file])]
        positions[file] += 1
        if entry["fate"] in ("good", "warned"):
            assert in_bronze[entry["order_id"]] == 1, (seed, entry)
        elif entry["fate"] in BAD:
            expected_refused[raw, entry["fate"]] += 1
        elif entry["fate"] == "late":
            assert in_bronze[entry["order_id"]] <= 1, (seed, entry)
    assert refused == expected_refused, seed
    assert max(in_bronze.values()) == 1


def test_nothing_vanishes(
    ledger: list[dict[str, str]], done: PipelineRun, tables: duckdb.DuckDBPyConnection, seed: int
) -> None:
    (bronze,) = tables.execute("SELECT count(*) FROM bronze_orders").fetchone() or (0,)
    (refused,) = tables.execute("SELECT count(*) FROM bronze_orders_quarantine").fetchone() or (0,)
    duplicates, late = done.total("bronze_orders", "duplicates"), done.total("bronze_orders", "late")
    fates = Counter(entry["fate"] for entry in ledger)
    assert duplicates == fates["duplicate"], seed
    assert late <= fates["late"], seed
    assert len(ledger) == bronze + refused + duplicates + late, seed
    assert done.total("bronze_orders", "rows") == len(ledger), seed


def test_refusals_are_counted_per_rule(done: PipelineRun, tables: duckdb.DuckDBPyConnection) -> None:
    counted: Counter[str] = Counter()
    for event in done.events:
        counted.update(event.refused)
    written = tables.execute("SELECT unnest(reasons) AS reason, count(*) FROM bronze_orders_quarantine GROUP BY 1")
    assert counted == dict(written.fetchall())
    assert len(counted) >= 4


def test_refused_rows_say_where_they_came_from(tables: duckdb.DuckDBPyConnection) -> None:
    found = tables.execute(
        "SELECT DISTINCT step, position LIKE '%.json', quarantined_at IS NULL FROM bronze_orders_quarantine"
    )
    assert found.fetchall() == [("bronze_orders", True, False)]


def test_silver_is_bronze_with_its_customers(tables: duckdb.DuckDBPyConnection, seed: int) -> None:
    joined = "SELECT b.*, c.name, c.country, c.segment FROM bronze_orders b LEFT JOIN customers c USING (customer_id)"
    columns = "order_id, customer_id, ordered_at, quantity, unit_price, amount, name, country, segment"
    difference = f"""
        (SELECT {columns} FROM ({joined}) EXCEPT ALL SELECT {columns} FROM silver_orders)
        UNION ALL
        (SELECT {columns} FROM silver_orders EXCEPT ALL SELECT {columns} FROM ({joined}))
    """
    assert tables.execute(difference).fetchall() == [], seed


def test_gold_is_silver_summed_for_every_closed_window(
    done: PipelineRun, tables: duckdb.DuckDBPyConnection, seed: int
) -> None:
    closed = [event.watermark for event in done.events if event.step == "gold_revenue" and event.watermark][-1]
    summed = f"""
        SELECT time_bucket(INTERVAL '1 minute', ordered_at) AS window_start, country,
               count(*) AS orders, sum(amount) AS revenue
        FROM silver_orders
        WHERE time_bucket(INTERVAL '1 minute', ordered_at) + INTERVAL '1 minute' <= TIMESTAMPTZ '{closed}'
        GROUP BY 1, 2
    """
    columns = "window_start, country, orders, revenue"
    wanted = sorted(tables.execute(f"SELECT {columns} FROM ({summed})").fetchall(), key=str)
    assert sorted(tables.execute(f"SELECT {columns} FROM gold_revenue").fetchall(), key=str) == wanted, seed
    assert len(wanted) > 10


def test_customers_keep_their_newest_row(tables: duckdb.DuckDBPyConnection, place: Path, seed: int) -> None:
    files = json.dumps(str(place / "data" / "customers" / "*.csv")).strip('"')
    newest = f"SELECT customer_id, max_by(country, updated_at), max(updated_at) FROM read_csv('{files}') GROUP BY ALL"
    kept = tables.execute("SELECT customer_id, country, updated_at FROM customers ORDER BY 1").fetchall()
    assert kept == sorted(tables.execute(newest).fetchall()), seed


def test_a_second_run_changes_nothing(done: PipelineRun, place: Path) -> None:
    versions = {name: DeltaTable(str(place / "tables" / name)).version() for name in ("bronze_orders", "gold_revenue")}
    sources = {"orders": place / "data" / "orders", "customers": place / "data" / "customers"}
    again = run_pipeline(done.spark, ROOT, "orders", place, sources=sources)
    assert {name: DeltaTable(str(place / "tables" / name)).version() for name in versions} == versions
    assert again.total("bronze_orders", "rows") == 0
