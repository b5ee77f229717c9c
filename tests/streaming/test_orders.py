"""The reference pipeline over sample data: each row has exactly the fate that the sample's ledger tells."""

from __future__ import annotations

import csv
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from deltalake import DeltaTable

import wanted
from headrace.config.models import FileSource
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
    return run_pipeline(spark, ROOT, "orders", place, sources=sources_in(place))


def sources_in(place: Path) -> dict[str, Path | FileSource]:
    """One file a batch: of larger ones the watermark passes no late row."""
    orders = str(place / "data" / "orders")
    one = {"maxFilesPerTrigger": 1}
    return {
        "orders": FileSource(kind="files", format="json", path=orders, options=one),
        "customers": place / "data" / "customers",
    }


@pytest.fixture(scope="module")
def tables(done: PipelineRun, place: Path) -> duckdb.DuckDBPyConnection:
    return wanted.opened(place / "tables")


def fate_of(reasons: list[str]) -> str:
    """What the ledger calls a row that was refused for these reasons."""
    if reasons == ["malformed"]:
        return "malformed"
    return "future" if "event time in the future" in reasons else "refused"


def test_each_row_has_the_fate_in_the_ledger(
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


def test_every_row_is_accounted_for(
    ledger: list[dict[str, str]], done: PipelineRun, tables: duckdb.DuckDBPyConnection, seed: int
) -> None:
    (bronze,) = tables.execute("SELECT count(*) FROM bronze_orders").fetchone() or (0,)
    (refused,) = tables.execute("SELECT count(*) FROM bronze_orders_quarantine").fetchone() or (0,)
    duplicates, late = done.total("bronze_orders", "duplicates"), done.total("bronze_orders", "late")
    fates = Counter(entry["fate"] for entry in ledger)
    assert duplicates == fates["duplicate"], seed
    assert 0 < late <= fates["late"], seed
    assert len(ledger) == bronze + refused + duplicates + late, seed
    assert done.total("bronze_orders", "rows") == len(ledger), seed


def test_quarantined_rows_are_counted_per_expectation(done: PipelineRun, tables: duckdb.DuckDBPyConnection) -> None:
    counted: Counter[str] = Counter()
    for event in done.events:
        counted.update(event.refused)
    written = tables.execute("SELECT unnest(reasons) AS reason, count(*) FROM bronze_orders_quarantine GROUP BY 1")
    assert counted == dict(written.fetchall())
    assert len(counted) >= 4


def test_quarantined_rows_have_step_position_and_time(tables: duckdb.DuckDBPyConnection) -> None:
    found = tables.execute(
        "SELECT DISTINCT step, position LIKE '%.json', quarantined_at IS NULL FROM bronze_orders_quarantine"
    )
    assert found.fetchall() == [("bronze_orders", True, False)]


def test_silver_is_bronze_joined_with_customers(tables: duckdb.DuckDBPyConnection, seed: int) -> None:
    assert wanted.rows(tables, wanted.silver_and_what_it_should_be()) == [], seed


def test_gold_has_the_sums_of_every_closed_window(
    done: PipelineRun, tables: duckdb.DuckDBPyConnection, seed: int
) -> None:
    closed = [event.watermark for event in done.events if event.step == "gold_revenue" and event.watermark][-1]
    assert wanted.rows(tables, wanted.gold_and_what_it_should_be(closed)) == [], seed
    assert len(wanted.rows(tables, "SELECT * FROM gold_revenue")) > 10


def test_customers_have_the_newest_rows(tables: duckdb.DuckDBPyConnection, place: Path, seed: int) -> None:
    assert wanted.rows(tables, wanted.customers_and_what_they_should_be(place / "data" / "customers")) == [], seed
    assert len(wanted.rows(tables, "SELECT * FROM customers")) > 100


def test_second_run_without_new_files_writes_nothing(done: PipelineRun, place: Path) -> None:
    versions = {name: DeltaTable(str(place / "tables" / name)).version() for name in ("bronze_orders", "gold_revenue")}
    again = run_pipeline(done.spark, ROOT, "orders", place, sources=sources_in(place))
    assert {name: DeltaTable(str(place / "tables" / name)).version() for name in versions} == versions
    assert again.total("bronze_orders", "rows") == 0
