"""Fetch secrets when a run starts. They are never written to a file, a log or a plan."""

from __future__ import annotations

import os
import re

from headrace.config.models import Secret, Security
from headrace.errors import SetupError


def fetch(value: str | Secret) -> str:
    """Return the value of a secret, or the value itself if it is plain text.

    On Databricks, a secret `scope/key` is read from its scope; elsewhere, from the environment variable
    HEADRACE_SECRET_SCOPE_KEY. Raise SetupError if this variable is not set.
    """
    if isinstance(value, str):
        return value
    if "DATABRICKS_RUNTIME_VERSION" in os.environ:
        return _from_scope(*value.secret.split("/", 1))
    variable = "HEADRACE_SECRET_" + re.sub(r"\W", "_", value.secret).upper()
    if variable not in os.environ:
        raise SetupError(f"secret {value.secret!r} is not set", fix=f"set the environment variable {variable}")
    return os.environ[variable]


def kafka_options(security: Security | None) -> dict[str, str]:
    """Return Spark's options for authentication with Kafka; an empty dict if `security` is None."""
    if security is None:
        return {}
    # Databricks ships Kafka's client with another package name.
    package_prefix = "kafkashaded." if "DATABRICKS_RUNTIME_VERSION" in os.environ else ""
    module = "plain.PlainLoginModule" if security.mechanism == "PLAIN" else "scram.ScramLoginModule"
    user, password = (_quoted(fetch(part)) for part in (security.username, security.password))
    login = f"{package_prefix}org.apache.kafka.common.security.{module} required username={user} password={password};"
    return {
        "kafka.security.protocol": "SASL_SSL" if security.tls else "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": security.mechanism,
        "kafka.sasl.jaas.config": login,
    }


def _quoted(text: str) -> str:
    """Return the text as a quoted value of a JAAS configuration."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _from_scope(scope: str, key: str) -> str:
    """Return the value of a secret on Databricks."""
    from pyspark.dbutils import DBUtils  # type: ignore[import-not-found]
    from pyspark.sql import SparkSession

    return str(DBUtils(SparkSession.getActiveSession()).secrets.get(scope, key))
