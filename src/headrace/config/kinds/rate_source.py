"""Generated rows as a source."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from headrace.config.kinds.source_model import SourceModel


class RateSource(SourceModel):
    """Numbered rows at a constant rate, for tests."""

    implementation: ClassVar[str] = "headrace.io.sources.rate_source"

    kind: Literal["rate"] = Field(description="Numbered rows at a constant rate.")
    rows_per_second: int = Field(default=1, ge=1, description="How many rows are generated per second.", examples=[100])

    @property
    def location(self) -> str:
        """The kind of the source, because generated rows have no location."""
        return self.kind
