"""The authentication with Kafka, for sources and topics."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Tag

from headrace.config.value_types import Model, SecretName, yaml_type


class Secret(Model):
    """A reference to a secret, `scope/key`. The secret is fetched when a run starts, and is never stored."""

    secret: SecretName


class Security(Model):
    """SASL authentication with Kafka. Connections use TLS unless `tls` is false."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    username: Annotated[Annotated[str, Tag("scalar")] | Annotated[Secret, Tag("mapping")], Discriminator(yaml_type)]
    password: Secret
    tls: bool = True
