"""What all kinds of sources have in common."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from headrace.config.value_types import Model, Setting


class SourceModel(Model):
    """The keys of one kind of source. `implementation` is a module with a function `open_stream`."""

    implementation: ClassVar[str]
    is_replayable: ClassVar[bool] = True  # Spark can read the rows of a batch again after a crash
    infers_schema: ClassVar[bool] = False  # whether an input may have `infer: true`

    kind: str = Field(description="The kind of the source.")
    options: dict[str, Setting] = Field(
        default={},
        description="Options of Spark's reader, such as `maxFilesPerTrigger` for files and `maxOffsetsPerTrigger` for "
        "Kafka.",
    )

    @property
    def location(self) -> str:
        """Where the data is, for error messages; overridden by each kind."""
        return ""

    @property
    def needs_schema(self) -> bool:
        """Whether an input of this source must have a schema, declared or inferred."""
        return False
