"""How to log in to Kafka, for sources and topics."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Tag

from headrace.config.value_types import Model, SecretName, yaml_type


class Secret(Model):
    """A reference to a secret, `scope/key`. Its value is fetched when a run starts and never stored."""

    secret: SecretName


class Security(Model):
    """How to log in to Kafka: SASL over TLS unless `tls` is false."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    username: Annotated[Annotated[str, Tag("scalar")] | Annotated[Secret, Tag("mapping")], Discriminator(yaml_type)]
    password: Secret
    tls: bool = True
