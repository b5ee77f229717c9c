"""The sample data matches its ledger, so that tests can compare a run with the ledger."""

import csv
import json
import re
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import yaml
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

from headrace.config.models import milliseconds
from headrace_shop.arrivals import CLEAN, DEFECTS, DELAY_MS, LATE_BY_MS, Mix
from headrace_shop.orders import CUSTOMER, ORDER
from headrace_shop.sample import main, make_sample

PIPELINE = Path(__file__).parents[2] / "conf/pipelines/orders.yml"
SMALL = {"orders": 6_000, "customers": 100, "files": 7, "pace": 60}
MANY = Mix(duplicate=0.05, malformed=0.05, future=0.02, invalid=0.04, late=0.05, warned=0.02)


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return make_sample(tmp_path_factory.mktemp("data"), **SMALL, mix=MANY)


def ledger_of(sample):
    with sample.ledger.open(newline="") as file:
        return list(csv.DictReader(file))


def lines_of(sample):
    return [
        (path.name, line) for path in sorted(sample.orders.glob("*.json")) for line in path.read_text().splitlines()
    ]


def rows_and_lines(sample):
    return list(zip(ledger_of(sample), (line for _, line in lines_of(sample)), strict=True))


def time_of(row):
    return datetime.fromisoformat(row["ordered_at"])


def contents(directory):
    return {path.relative_to(directory): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_ledger_has_each_line_of_each_file_in_order(sample):
    ledger, lines = ledger_of(sample), lines_of(sample)
    assert [row["file"] for row in ledger] == [file for file, _ in lines]
    assert [int(row["row"]) for row in ledger] == list(range(1, 6_001))
    assert all(row["order_id"] in line for row, (_, line) in zip(ledger, lines, strict=True))
    assert Counter(row["fate"] for row in ledger) == sample.fates
    assert len({file for file, _ in lines}) == 7


def test_each_fate_has_about_its_share_and_each_defect_occurs(sample):
    for fate in ("duplicate", "malformed", "future", "invalid", "late"):
        assert sample.fates[fate] == pytest.approx(getattr(MANY, fate) * 6_000, rel=0.25), fate
    defects = {(row["fate"], row["defect"]) for row in ledger_of(sample) if row["defect"]}
    warned = {("good", defect) for defect in DEFECTS["warned"]}
    assert defects == warned | {(fate, defect) for fate in ("malformed", "invalid") for defect in DEFECTS[fate]}


def test_same_arguments_give_same_bytes_and_another_seed_does_not(tmp_path):
    first, same, other = tmp_path / "first", tmp_path / "same", tmp_path / "other"
    for directory, seed in ((first, 1), (same, 1), (other, 2)):
        make_sample(directory, **SMALL, seed=seed)
    assert contents(first) == contents(same)
    assert contents(first).keys() == contents(other).keys()
    assert all(contents(first)[path] != contents(other)[path] for path in contents(first))


@pytest.mark.parametrize("disorder", [0, 5, 8.9])
def test_only_late_rows_can_be_late_in_bronze_and_none_in_gold(tmp_path, disorder):
    sample = make_sample(tmp_path, **SMALL, mix=MANY, disorder=disorder)
    newest = datetime.min.replace(tzinfo=time_of(ledger_of(sample)[0]).tzinfo)
    behind = {"good": [], "duplicate": [], "late": []}
    for row in ledger_of(sample):
        if row["fate"] in behind:
            newest = max(newest, time_of(row))
            behind[row["fate"]].append(newest - time_of(row))
    assert max(behind["good"]) <= timedelta(minutes=disorder)
    assert max(behind["duplicate"]) <= timedelta(minutes=9)
    assert max(behind["late"]) < timedelta(minutes=20)
    assert sum(delay > timedelta(minutes=10) for delay in behind["late"]) > 250


def test_only_duplicates_repeat_an_earlier_good_line(sample):
    good, copies, across_files = {}, 0, 0
    for row, line in rows_and_lines(sample):
        if row["fate"] == "duplicate":
            original, file = good[row["order_id"]]
            assert line == original
            copies += 1
            across_files += row["file"] != file
        elif row["fate"] == "good":
            assert good.setdefault(row["order_id"], (line, row["file"])) == (line, row["file"])
        else:
            assert row["order_id"] not in good
    assert copies == sample.fates["duplicate"]
    assert across_files > 10


def test_invalid_future_and_warned_rows_match_their_fate(sample):
    for row, line in rows_and_lines(sample):
        if row["fate"] in ("malformed", "duplicate"):
            continue
        order = json.loads(line)
        problems = [
            order["customer_id"] is None or order["ordered_at"] is None,
            not 1 <= order["quantity"] <= 1000,
        ]
        assert any(problems) == (row["fate"] == "invalid"), line
        exact = round(order["quantity"] * order["unit_price"], 2) == order["amount"]
        assert exact or row["fate"] == "invalid" or row["defect"] == "wrong amount"
        assert (row["fate"] == "future") == (time_of(row).year > 2080)


def test_spark_cannot_parse_exactly_the_malformed_lines(spark, sample):
    schema = StructType().add("r", ArrayType(ORDER)).add("_corrupt", "string")
    wrapped = F.concat(F.lit('{"r":['), "value", F.lit("]}"))
    parsed = F.from_json(wrapped, schema, {"columnNameOfCorruptRecord": "_corrupt"})
    malformed = (
        spark.read.text(str(sample.orders))
        .select("value", parsed.alias("p"))
        .where("p._corrupt IS NOT NULL OR p.r IS NULL OR size(p.r) != 1 OR get(p.r, 0) IS NULL")
    )
    order_ids = Counter(re.search("o[0-9]{9}", row.value)[0] for row in malformed.collect())
    assert order_ids == Counter(row["order_id"] for row in ledger_of(sample) if row["fate"] == "malformed")


def test_customers_have_updates_and_some_are_missing(spark, sample):
    read = spark.read.schema(CUSTOMER).options(header=True, mode="FAILFAST", enforceSchema=False)
    rows = read.csv(str(sample.customers)).collect()
    arrived = [row for path in sorted(sample.customers.iterdir()) for row in read.csv(str(path)).collect()]
    assert sorted(rows) == sorted(arrived)
    assert {row.customer_id for row in rows} == {f"c{n:06d}" for n in range(1, 101) if n % 20}
    assert "Weir, Tom" in {row.name for row in rows}
    assert len({(row.customer_id, row.updated_at) for row in rows}) == len(rows)
    last = {row.customer_id: row for row in arrived}
    newest = {row.customer_id: row for row in sorted(arrived, key=lambda row: row.updated_at)}
    stale = [customer for customer in newest if last[customer] != newest[customer]]
    assert 0 < len(stale) < 20


def test_modification_times_follow_file_names(sample):
    for directory in (sample.orders, sample.customers):
        files = sorted(directory.iterdir())
        modified = [path.stat().st_mtime_ns // 1_000_000 for path in files]
        assert sorted(set(modified)) == modified
        assert not [path for path in files if path.name.startswith(".")]


def test_delays_match_the_pipeline():
    steps = yaml.safe_load(PIPELINE.read_text())["steps"]
    bronze, gold = (steps[name]["reads"]["orders"]["watermark"] for name in ("bronze_orders", "gold_revenue"))
    assert milliseconds(bronze["delay"]) == DELAY_MS
    assert milliseconds(gold["delay"]) > LATE_BY_MS.stop


def test_append_continues_the_sample(tmp_path):
    first = make_sample(tmp_path, **SMALL)
    before = contents(first.customers)
    second = make_sample(tmp_path, **(SMALL | {"orders": 500, "files": 100}), append=True)
    ledger = ledger_of(second)
    assert [int(row["row"]) for row in ledger] == list(range(1, 6_501))
    assert Counter(row["fate"] for row in ledger) == Counter(first.fates) + Counter(second.fates)
    assert [file for file, _ in lines_of(second)] == [row["file"] for row in ledger]
    assert contents(second.customers) == before
    newest = max(time_of(row) for row in ledger[:6_000] if row["fate"] == "good")
    oldest = min(time_of(row) for row in ledger[6_000:] if row["fate"] in ("good", "duplicate"))
    assert timedelta(0) <= newest - oldest <= timedelta(minutes=5)
    modified = [path.stat().st_mtime_ns for path in sorted(second.orders.iterdir())]
    assert sorted(set(modified)) == modified


def test_clean_sample_has_only_good_rows_out_of_order(tmp_path):
    sample = make_sample(tmp_path, **SMALL, mix=CLEAN)
    assert sample.fates == {"good": 6_000}
    times = [time_of(row) for row in ledger_of(sample)]
    assert times != sorted(times)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"files": 7_000}, "one order per file"),
        ({"customers": 0}, "one customer"),
        ({"disorder": 9}, "disorder must be from 0 to less than 9 minutes"),
        ({"start": "2100-01-01"}, "the last order would be in the future"),
        ({"append": True}, "no sample to append to"),
    ],
)
def test_invalid_arguments_are_an_error_before_anything_is_written(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        make_sample(tmp_path, **(SMALL | arguments))
    assert list(tmp_path.iterdir()) == []


def test_existing_sample_is_not_overwritten(tmp_path):
    make_sample(tmp_path, **SMALL)
    with pytest.raises(ValueError, match="already has a sample"):
        make_sample(tmp_path, **SMALL)


def test_command_line_generates_the_same_sample(tmp_path, capsys):
    sample = make_sample(tmp_path / "a", orders=300, files=3, seed=5, disorder=2.5, mix=Mix(late=0.5))
    options = ["--orders=300", "--files=3", "--seed=5", "--disorder=2.5", "--late=0.5"]
    main(["--into", str(tmp_path / "b"), *options])
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert f"{sample.fates['late']} late" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        main(["--into", str(tmp_path / "b"), "--clean"])
    assert "already has a sample" in capsys.readouterr().err
