"""The reference pipeline on sample data: each row has the fate that the sample's ledger records."""

from __future__ import annotations

import csv
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from deltalake import DeltaTable

import expected_tables
from headrace.config.models import FileSource
from headrace.testing import PipelineRun, run_pipeline
from headrace_shop.sample import make_sample

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
QUARANTINED = ("malformed", "future", "invalid")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("orders")


@pytest.fixture(scope="module")
def seed() -> int:
    """A new seed for each run; failures show it."""
    return random.randrange(1_000_000)


@pytest.fixture(scope="module")
def ledger(directory: Path, seed: int) -> list[dict[str, str]]:
    make_sample(directory / "data", orders=100_000, customers=1000, files=20, seed=seed)
    with (directory / "data" / "ledger.csv").open() as lines:
        return list(csv.DictReader(lines))


@pytest.fixture(scope="module")
def run(spark: SparkSession, directory: Path, ledger: list[dict[str, str]]) -> PipelineRun:
    return run_pipeline(spark, ROOT, "orders", directory, sources=sources_in(directory))


def sources_in(directory: Path) -> dict[str, Path | FileSource]:
    """Return sources with one file per batch: with larger batches no row would be late."""
    orders = str(directory / "data" / "orders")
    options = {"maxFilesPerTrigger": 1}
    return {
        "orders": FileSource(kind="files", format="json", path=orders, options=options),
        "customers": directory / "data" / "customers",
    }


@pytest.fixture(scope="module")
def tables(run: PipelineRun, directory: Path) -> duckdb.DuckDBPyConnection:
    return expected_tables.open_tables(directory / "tables")


def fate_of(reasons: list[str]) -> str:
    """Return the ledger's fate of a row that was quarantined for these reasons."""
    if reasons == ["malformed"]:
        return "malformed"
    return "future" if "event time in the future" in reasons else "invalid"


def test_each_row_has_the_fate_in_the_ledger(
    ledger: list[dict[str, str]], tables: duckdb.DuckDBPyConnection, directory: Path, seed: int
) -> None:
    in_bronze = Counter(row[0] for row in tables.execute("SELECT order_id FROM bronze_orders").fetchall())
    rows = tables.execute("SELECT raw, reasons FROM bronze_orders_quarantine").fetchall()
    quarantined = Counter((raw, fate_of(reasons)) for raw, reasons in rows)
    lines = {
        (file.name, number): line
        for file in sorted((directory / "data" / "orders").glob("*.json"))
        for number, line in enumerate(file.read_text().splitlines())
    }
    positions: Counter[str] = Counter()
    expected: Counter[tuple[str, str]] = Counter()
    for entry in ledger:
        file = Path(entry["file"]).name
        raw = lines[(file, positions[file])]
        positions[file] += 1
        if entry["fate"] in ("good", "warned"):
            assert in_bronze[entry["order_id"]] == 1, (seed, entry)
        elif entry["fate"] in QUARANTINED:
            expected[raw, entry["fate"]] += 1
        elif entry["fate"] == "late":
            assert in_bronze[entry["order_id"]] <= 1, (seed, entry)
    assert quarantined == expected, seed
    assert max(in_bronze.values()) == 1


def test_every_row_is_accounted_for(
    ledger: list[dict[str, str]], run: PipelineRun, tables: duckdb.DuckDBPyConnection, seed: int
) -> None:
    (bronze,) = tables.execute("SELECT count(*) FROM bronze_orders").fetchone() or (0,)
    (quarantined,) = tables.execute("SELECT count(*) FROM bronze_orders_quarantine").fetchone() or (0,)
    duplicates, late = run.total("bronze_orders", "duplicates"), run.total("bronze_orders", "late")
    fates = Counter(entry["fate"] for entry in ledger)
    assert duplicates == fates["duplicate"], seed
    assert 0 < late <= fates["late"], seed
    assert len(ledger) == bronze + quarantined + duplicates + late, seed
    assert run.total("bronze_orders", "rows") == len(ledger), seed


def test_quarantined_rows_are_counted_per_expectation(run: PipelineRun, tables: duckdb.DuckDBPyConnection) -> None:
    counted: Counter[str] = Counter()
    for event in run.events:
        counted.update(event.quarantined)
    written = tables.execute("SELECT unnest(reasons) AS reason, count(*) FROM bronze_orders_quarantine GROUP BY 1")
    assert counted == dict(written.fetchall())
    assert len(counted) >= 4


def test_quarantined_rows_have_step_position_and_time(tables: duckdb.DuckDBPyConnection) -> None:
    rows = tables.execute(
        "SELECT DISTINCT step, position LIKE '%.json', quarantined_at IS NULL FROM bronze_orders_quarantine"
    )
    assert rows.fetchall() == [("bronze_orders", True, False)]


def test_silver_is_bronze_joined_with_customers(tables: duckdb.DuckDBPyConnection, seed: int) -> None:
    assert expected_tables.rows(tables, expected_tables.silver_difference()) == [], seed


def test_gold_has_the_sums_of_every_closed_window(
    run: PipelineRun, tables: duckdb.DuckDBPyConnection, seed: int
) -> None:
    watermark = [event.watermark for event in run.events if event.step == "gold_revenue" and event.watermark][-1]
    assert expected_tables.rows(tables, expected_tables.gold_difference(watermark)) == [], seed
    assert len(expected_tables.rows(tables, "SELECT * FROM gold_revenue")) > 10


def test_customers_have_the_newest_rows(tables: duckdb.DuckDBPyConnection, directory: Path, seed: int) -> None:
    difference = expected_tables.customers_difference(directory / "data" / "customers")
    assert expected_tables.rows(tables, difference) == [], seed
    assert len(expected_tables.rows(tables, "SELECT * FROM customers")) > 100


def test_second_run_without_new_files_writes_nothing(run: PipelineRun, directory: Path) -> None:
    tables = directory / "tables"
    versions = {name: DeltaTable(str(tables / name)).version() for name in ("bronze_orders", "gold_revenue")}
    second = run_pipeline(run.spark, ROOT, "orders", directory, sources=sources_in(directory))
    assert {name: DeltaTable(str(tables / name)).version() for name in versions} == versions
    assert second.total("bronze_orders", "rows") == 0
