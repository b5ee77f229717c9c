"""A real broker: records, topics, Spark's Kafka source, and errors at startup."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from headrace.errors import DataError, SetupError
from headrace.spark import jars
from headrace.testing.kafka_broker import KafkaBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def broker(spark: SparkSession) -> Iterator[KafkaBroker]:
    with KafkaBroker(spark) as running:
        yield running


def test_sent_records_are_read(broker: KafkaBroker) -> None:
    broker.create_topic("mixed")
    broker.send("mixed", ["text", b"\xff\x00", ("key", "value"), (b"gone", None)])
    assert [(record.offset, record.key, record.value) for record in broker.read("mixed")] == [
        (0, None, b"text"),
        (1, None, b"\xff\x00"),
        (2, b"key", b"value"),
        (3, b"gone", None),
    ]


def test_many_records_keep_their_order(broker: KafkaBroker) -> None:
    broker.create_topic("many")
    broker.send("many", map(str, range(3000)))
    broker.send("many", [])
    assert [int(record.value or b"") for record in broker.read("many")] == list(range(3000))


def test_spark_streams_all_available_records(broker: KafkaBroker, spark: SparkSession, tmp_path: Path) -> None:
    broker.create_topic("orders", partitions=2)
    broker.send("orders", [(str(key), f"order {key}") for key in range(100)])
    options = {
        "kafka.bootstrap.servers": broker.servers,
        "subscribe": "orders",
        "startingOffsets": "earliest",
    }
    rows = spark.readStream.format("kafka").options(**options).load()
    rows = rows.selectExpr("cast(value as string) value", "partition")
    checkpoint, out = str(tmp_path / "checkpoint"), str(tmp_path / "out")
    writer = rows.writeStream.format("delta").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start(out).awaitTermination()
    written = spark.read.format("delta").load(out).collect()
    assert {row.value for row in written} == {f"order {key}" for key in range(100)}
    assert {row.partition for row in written} == {0, 1}
    assert len(written) == 100


def test_recreated_topic_is_empty(broker: KafkaBroker) -> None:
    broker.create_topic("again")
    broker.send("again", ["old"])
    broker.delete_topic("again")
    broker.create_topic("again")
    assert broker.read("again") == []


def test_existing_topic_is_an_error(broker: KafkaBroker) -> None:
    broker.create_topic("twice")
    with pytest.raises(DataError, match="Topic 'twice' already exists"):
        broker.create_topic("twice")


def test_unknown_topic_is_an_error(broker: KafkaBroker) -> None:
    for call in (broker.read, lambda name: broker.send(name, ["x"])):
        with pytest.raises(DataError, match="the broker has no topic 'absent'"):
            call("absent")
    with pytest.raises(DataError, match="does not host this topic-partition"):
        broker.delete_topic("absent")


def test_broker_stops_and_deletes_its_files(spark: SparkSession) -> None:
    with KafkaBroker(spark) as broker:
        host, port = broker.servers.split(":")
        socket.create_connection((host, int(port)), 5).close()
        log = broker.log
        assert "Kafka Server started" in log.read_text()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), 5)
    assert not log.parent.exists()


def test_cluster_id_may_start_with_a_hyphen(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID(bytes=b"\xf8" + bytes(15)))
    with KafkaBroker(spark) as broker:
        (metadata,) = broker.log.parent.rglob("meta.properties")
        assert "cluster.id=-AAA" in metadata.read_text()


def test_broker_that_dies_at_startup_shows_the_end_of_its_log(spark: SparkSession) -> None:
    broker = KafkaBroker(spark)
    with socket.socket() as occupying:
        occupying.bind(("127.0.0.1", int(broker.servers.split(":")[1])))
        occupying.listen()
        with pytest.raises(SetupError, match=r"died during startup(?s:.)*Address already in use"), broker:
            pass
    assert not broker.log.exists()


def test_missing_kafka_jars_are_an_error(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "kafka_broker_jars", lambda: ())
    with pytest.raises(SetupError, match="could not format its directory"), KafkaBroker(spark):
        pass


def test_session_without_kafka_classes_is_an_error(spark: SparkSession) -> None:
    kafka = SimpleNamespace(kafka=spark._jvm.no.such.package)  # type: ignore[union-attr]
    session: Any = SimpleNamespace(_jvm=SimpleNamespace(org=SimpleNamespace(apache=kafka)))
    with pytest.raises(SetupError, match="this Spark session has no Kafka classes"):
        KafkaBroker(session).create_topic("x")
