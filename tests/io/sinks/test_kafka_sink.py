"""Rows as Kafka records."""

from __future__ import annotations

import pytest

from headrace.config.models import Environment, LocalEngine, Security, Sink, Tables, Topic
from headrace.errors import ConfigurationError
from headrace.io.sinks import kafka_sink


def test_writer_options_have_servers_login_and_the_topics_own_options(monkeypatch):
    monkeypatch.setenv("HEADRACE_SECRET_SHOP_PASSWORD", "hush")
    security = Security(mechanism="PLAIN", username="ann", password={"secret": "shop/password"})
    topic = Topic(servers="broker:9093", topic="orders-v2", security=security, options={"kafka.linger.ms": 5})
    environment = Environment(
        name="local",
        engine=LocalEngine(kind="local"),
        tables=Tables(root="t"),
        checkpoints="c",
        topics={"orders": topic},
    )
    options = kafka_sink.writer_options(Sink(topic="orders"), environment)
    assert options["kafka.bootstrap.servers"] == "broker:9093"
    assert options["topic"] == "orders-v2"
    assert options["kafka.linger.ms"] == "5"
    assert 'password="hush"' in options["kafka.sasl.jaas.config"]


@pytest.mark.parametrize(
    ("columns", "result"),
    [
        ("'a' AS value", "unchanged"),
        ("'a' AS value, 'k' AS key", "unchanged"),
        ("'a' AS value, 2 AS count", '{"value":"a","count":2}'),  # the columns of a word count
        ("'k' AS key, 2 AS count", '{"key":"k","count":2}'),
        (
            "'a' AS value, 'k' AS key, 2 AS count",
            "the rows have columns of a Kafka record ('key', 'value') and other columns ('count')",
        ),
        (
            "'a' AS value, 't' AS topic",
            "column 'topic' has no effect, because the sink sends all rows to topic 'terms'",
        ),
    ],
)
def test_no_column_is_lost_in_a_topic(spark, columns, result):
    rows = spark.sql(f"SELECT {columns}")
    if result == "unchanged":
        kafka_sink.require_record_columns(rows, "terms")
        assert kafka_sink.as_records(rows) is rows
    elif result.startswith("{"):
        kafka_sink.require_record_columns(rows, "terms")
        assert [row.value for row in kafka_sink.as_records(rows).collect()] == [result]
    else:
        with pytest.raises(ConfigurationError) as error:
            kafka_sink.require_record_columns(rows, "terms")
        assert str(error.value).startswith(f"Error: {result}")
