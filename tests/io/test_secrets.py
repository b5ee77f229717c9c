"""Secrets are fetched when a run starts, and become Kafka logins."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from headrace.config.models import Secret, Security
from headrace.errors import SetupError
from headrace.io import secrets

PASSWORD = Secret(secret="shop/kafka-password")


def test_plain_text_is_returned_and_a_secret_is_read_from_its_variable(monkeypatch):
    monkeypatch.setenv("HEADRACE_SECRET_SHOP_KAFKA_PASSWORD", "hush")
    assert secrets.fetch("plain") == "plain"
    assert secrets.fetch(PASSWORD) == "hush"


def test_missing_secret_is_an_error_that_names_its_variable(monkeypatch, golden):
    monkeypatch.delenv("HEADRACE_SECRET_SHOP_KAFKA_PASSWORD", raising=False)
    with pytest.raises(SetupError) as error:
        secrets.fetch(PASSWORD)
    golden("secrets/missing", str(error.value))


def test_on_databricks_a_secret_is_read_from_its_scope(monkeypatch):
    """The stub of `dbutils` follows the documentation of Databricks."""
    dbutils = ModuleType("pyspark.dbutils")
    scopes = SimpleNamespace(get=lambda scope, key: f"{key} of {scope}")
    dbutils.DBUtils = lambda spark: SimpleNamespace(secrets=scopes)
    monkeypatch.setitem(sys.modules, "pyspark.dbutils", dbutils)
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "17.3")
    assert secrets.fetch(PASSWORD) == "kafka-password of shop"
    login = secrets.kafka_options(Security(mechanism="SCRAM-SHA-512", username="ann", password=PASSWORD))
    assert login["kafka.sasl.jaas.config"].startswith("kafkashaded.org.apache.kafka.common.security.scram.Scram")


@pytest.mark.parametrize(
    ("mechanism", "tls", "module", "protocol"),
    [
        ("PLAIN", True, "plain.PlainLoginModule", "SASL_SSL"),
        ("SCRAM-SHA-256", True, "scram.ScramLoginModule", "SASL_SSL"),
        ("SCRAM-SHA-512", False, "scram.ScramLoginModule", "SASL_PLAINTEXT"),
    ],
)
def test_login_quotes_user_and_password(monkeypatch, mechanism, tls, module, protocol):
    monkeypatch.setenv("HEADRACE_SECRET_SHOP_KAFKA_PASSWORD", 'a"b\\c;d')
    security = Security(mechanism=mechanism, username="ann", password=PASSWORD, tls=tls)
    assert secrets.kafka_options(security) == {
        "kafka.security.protocol": protocol,
        "kafka.sasl.mechanism": mechanism,
        "kafka.sasl.jaas.config": f"org.apache.kafka.common.security.{module} required "
        'username="ann" password="a\\"b\\\\c;d";',
    }


def test_without_security_there_are_no_options():
    assert secrets.kafka_options(None) == {}
