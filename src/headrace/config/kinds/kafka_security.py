"""The authentication with Kafka, for sources and topics."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from headrace.config.value_types import Model, SecretName, yaml_type


class Secret(Model):
    """A reference to a secret, `scope/key`. The secret is fetched when a run starts, and is never stored."""

    secret: SecretName = Field(
        description="The secret scope and the key in this scope, separated by a slash.",
        examples=["shop/kafka-password"],
    )


class Security(Model):
    """SASL authentication with Kafka. Connections use TLS unless `tls` is false."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        description="The SASL mechanism.", examples=["SCRAM-SHA-512"]
    )
    username: Annotated[Annotated[str, Tag("scalar")] | Annotated[Secret, Tag("mapping")], Discriminator(yaml_type)] = (
        Field(description="The user, as text or as a reference to a secret.", examples=[{"secret": "shop/kafka-user"}])
    )
    password: Secret = Field(description="The password, as a reference.", examples=[{"secret": "shop/kafka-password"}])
    tls: bool = Field(default=True, description="Whether connections use TLS.", examples=[False])


# The key `security` of sources and topics.
SECURITY = Field(default=None, description="The authentication; without it, connections are plain text.")
