"""The options that Spark gets for Kafka topics; tests/streaming/test_kafka.py reads real ones."""

from __future__ import annotations

import pytest

from headrace.config.models import KafkaSource, Read, Security
from headrace.io.sources import open_input
from inputs import environment


def options_of(spark, source):
    rows = open_input.open_input(spark, Read(source="it"), environment(it=source))
    options = rows._jdf.queryExecution().analyzed().collectLeaves().head().extraOptions()
    return {
        name: options.get(name) for name in ("subscribe", "subscribePattern", "startingOffsets", "maxOffsetsPerTrigger")
    }


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"topics": ["a", "b"]}, {"subscribe": "a,b", "startingOffsets": "earliest"}),
        ({"pattern": "a.*", "start": "latest"}, {"subscribePattern": "a.*", "startingOffsets": "latest"}),
        (
            {"topics": ["a"], "options": {"startingOffsets": "latest", "maxOffsetsPerTrigger": 5}},
            {"subscribe": "a", "startingOffsets": "latest", "maxOffsetsPerTrigger": "5"},
        ),
    ],
)
def test_topics_start_and_own_options_reach_spark(spark, keys, expected):
    source = KafkaSource(kind="kafka", servers="broker:9092", format="text", **keys)
    options = options_of(spark, source)
    assert {name: value for name, value in options.items() if value is not None} == expected


def test_login_reaches_spark(spark, monkeypatch):
    monkeypatch.setenv("HEADRACE_SECRET_SHOP_PASSWORD", "hush")
    security = Security(mechanism="PLAIN", username="ann", password={"secret": "shop/password"})
    source = KafkaSource(kind="kafka", servers="broker:9092", topics=["a"], format="text", security=security)
    rows = open_input.open_input(spark, Read(source="it"), environment(it=source))
    options = rows._jdf.queryExecution().analyzed().collectLeaves().head().extraOptions()
    assert options.get("kafka.bootstrap.servers") == "broker:9092"
    assert options.get("kafka.security.protocol") == "SASL_SSL"
    assert 'password="hush"' in options.get("kafka.sasl.jaas.config")
