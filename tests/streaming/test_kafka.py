"""Pipelines that read from Kafka topics and write to Delta tables and topics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.config.models import KafkaSource
from headrace.testing import run_pipeline
from headrace.testing.kafka_broker import KafkaBroker
from headrace_shop.sample import make_sample
from processes import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEPS = """
steps:
  land:
    layer: bronze
    reads:
      orders:
        source: orders
        schema: id STRING, n INT, at TIMESTAMP
        watermark: {column: at, delay: 10 minutes}
        expect: [{not_null: [id]}]
    transform: headrace.transforms.bronze:deduplicate
    with: {keys: [id]}
    writes: {table: landed}
  forward:
    layer: silver
    reads: {orders: {table: landed}}
    writes: {topic: clean}
"""
LOCAL = """
engine: {{kind: local}}
tables: {{root: tables}}
checkpoints: checkpoints
sources:
  orders: {{kind: kafka, format: json, servers: "{servers}", topics: [orders]}}
topics:
  clean: {{servers: "{servers}", topic: clean}}
"""


@pytest.fixture(scope="module")
def broker(spark: SparkSession) -> Iterator[KafkaBroker]:
    with KafkaBroker(spark) as running:
        yield running


def order(name: str | None, number: int) -> str:
    return json.dumps({"id": name, "n": number, "at": "2026-01-01T12:00:00Z"})


def test_pipeline_from_topic_to_table_to_topic(broker: KafkaBroker, spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "conf" / "pipelines").mkdir(parents=True)
    (tmp_path / "conf" / "pipelines" / "orders.yml").write_text(STEPS)
    (tmp_path / "conf" / "local.yml").write_text(LOCAL.format(servers=broker.servers))
    broker.create_topic("orders")
    broker.create_topic("clean")
    broker.send("orders", [order("a", 1), order("b", 2), order("a", 1), order(None, 3), order("c", 4) + "trailing"])
    broker.send("orders", [b'{"id":"J\xfcrgen","n":5}'])

    first = run_pipeline(spark, tmp_path, "orders", tmp_path)
    assert {row.id for row in first.rows("landed")} == {"a", "b"}
    quarantined = {row.position: (row.reasons, row.raw) for row in first.quarantine("landed")}
    assert quarantined == {
        "orders-0-3": (["not_null id"], order(None, 3)),
        "orders-0-4": (["malformed"], order("c", 4) + "trailing"),
        "orders-0-5": (["malformed"], '{"id":"J\ufffdrgen","n":5}'),
    }
    assert (first.total("land", "rows"), first.total("land", "duplicates")) == (6, 1)
    lags = [event.lag for event in first.events if event.step == "land" and event.what == "batch"]
    assert all(lag == {"records": 0} for lag in lags) and lags
    assert {json.loads(record.value or b"")["id"] for record in broker.read("clean")} == {"a", "b"}

    broker.send("orders", [order("a", 1), order("d", 5)])
    second = run_pipeline(spark, tmp_path, "orders", tmp_path)
    assert second.total("land", "rows") == 2
    assert {row.id for row in second.rows("landed")} == {"a", "b", "d"}
    assert sorted(json.loads(record.value or b"")["id"] for record in broker.read("clean")) == ["a", "b", "d"]


FORMATS = """
steps:
  texts:
    layer: bronze
    reads: {words: {source: texts, expect: [{matches: {value: "[a-z]+"}}]}}
    writes: [{table: texts}, {topic: echoed}]
  bytes: {layer: bronze, reads: {words: {source: bytes}}, writes: {table: bytes}}
  latest: {layer: bronze, reads: {words: {source: latest}}, writes: {table: latest}}
  latin: {layer: bronze, reads: {words: {source: latin}}, writes: {table: latin}}
"""
FORMATS_LOCAL = """
engine: {{kind: local}}
tables: {{root: tables}}
checkpoints: checkpoints
sources:
  texts: {{kind: kafka, format: text, servers: "{servers}", pattern: "words-.*"}}
  bytes: {{kind: kafka, format: bytes, servers: "{servers}", topics: [words-a, words-b]}}
  latest: {{kind: kafka, format: text, servers: "{servers}", topics: [words-a], start: latest}}
  latin:
    {{kind: kafka, format: text, servers: "{servers}", topics: [words-a], options: {{encoding: ISO-8859-1}}}}
topics:
  echoed: {{servers: "{servers}", topic: echoed}}
"""


def test_topic_pattern_formats_and_start_offsets(broker: KafkaBroker, spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "conf" / "pipelines").mkdir(parents=True)
    (tmp_path / "conf" / "pipelines" / "words.yml").write_text(FORMATS)
    (tmp_path / "conf" / "local.yml").write_text(FORMATS_LOCAL.format(servers=broker.servers))
    for topic in ("words-a", "words-b", "echoed"):
        broker.create_topic(topic)
    broker.send("words-a", ["one", "2", b"J\xfcrgen"])
    broker.send("words-b", ["three"])

    run = run_pipeline(spark, tmp_path, "words", tmp_path)
    assert sorted(row.value for row in run.rows("texts")) == ["one", "three"]
    quarantined = {row.position: (row.raw, row.reasons) for row in run.quarantine("texts")}
    assert quarantined == {
        "words-a-0-1": ("2", ["matches value"]),
        "words-a-0-2": ("J\ufffdrgen", ["malformed"]),
    }
    assert sorted(row.value for row in run.rows("latin")) == ["2", "Jürgen", "one"]
    assert sorted(record.value or b"" for record in broker.read("echoed")) == [b"one", b"three"]
    assert sorted(bytes(row.value) for row in run.rows("bytes")) == [b"2", b"J\xfcrgen", b"one", b"three"]
    assert run.rows("latest") == []

    broker.send("words-a", ["four"])
    run = run_pipeline(spark, tmp_path, "words", tmp_path)
    assert [row.value for row in run.rows("latest")] == ["four"]
    assert len(broker.read("echoed")) == 3


@pytest.mark.full
def test_reference_pipeline_reads_from_a_topic(broker: KafkaBroker, spark: SparkSession, tmp_path: Path) -> None:
    make_sample(tmp_path / "data", orders=500, customers=50, files=1)
    (file,) = (tmp_path / "data" / "orders").glob("*.json")
    lines = file.read_text().splitlines()
    broker.create_topic("shop-orders")
    broker.send("shop-orders", lines)
    topic = KafkaSource(kind="kafka", format="json", servers=broker.servers, topics=["shop-orders"])
    sources = {"orders": topic, "customers": tmp_path / "data" / "customers"}
    run = run_pipeline(spark, ROOT, "orders", tmp_path, sources=sources)
    quarantined = run.quarantine("bronze_orders")
    dropped = run.total("bronze_orders", "duplicates") + run.total("bronze_orders", "late")
    assert len(lines) == len(run.rows("bronze_orders")) + len(quarantined) + dropped
    assert all(lines[int(row.position.rpartition("-")[2])] == row.raw for row in quarantined)
    assert len(run.rows("silver_orders")) == len(run.rows("bronze_orders")) > len(quarantined) > 0
