"""A pipeline between two Kafka topics: judged on arrival, written to Delta and on to a topic."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.testing import run_pipeline
from headrace.testing.kafka import KafkaBroker

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
  send_on:
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


def test_from_topic_to_table_and_on_to_a_topic(broker: KafkaBroker, spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "conf" / "pipelines").mkdir(parents=True)
    (tmp_path / "conf" / "pipelines" / "orders.yml").write_text(STEPS)
    (tmp_path / "conf" / "local.yml").write_text(LOCAL.format(servers=broker.servers))
    broker.create_topic("orders")
    broker.create_topic("clean")
    broker.send("orders", [order("a", 1), order("b", 2), order("a", 1), order(None, 3), order("c", 4) + "trailing"])

    first = run_pipeline(spark, tmp_path, "orders", tmp_path)
    assert {row.id for row in first.rows("landed")} == {"a", "b"}
    refused = {(row.position, tuple(row.reasons)) for row in first.quarantine("landed")}
    assert refused == {("orders-0-3", ("not_null id",)), ("orders-0-4", ("malformed",))}
    assert (first.total("land", "rows"), first.total("land", "duplicates")) == (5, 1)
    assert [event.behind for event in first.events if event.step == "land"] == [0]
    assert {json.loads(record.value or b"")["id"] for record in broker.read("clean")} == {"a", "b"}

    broker.send("orders", [order("a", 1), order("d", 5)])
    second = run_pipeline(spark, tmp_path, "orders", tmp_path)
    assert second.total("land", "rows") == 2
    assert {row.id for row in second.rows("landed")} == {"a", "b", "d"}
    assert sorted(json.loads(record.value or b"")["id"] for record in broker.read("clean")) == ["a", "b", "d"]
