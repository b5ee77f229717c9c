"""A directory of files as a source."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from headrace.config.kinds.source_model import SourceModel

FIXED_SCHEMA_FORMATS = ("text", "binaryFile")  # Spark defines the columns of these formats


class FileSource(SourceModel):
    """A directory; its files, and those added later, are the source's data."""

    implementation: ClassVar[str] = "headrace.io.sources.file_source"
    infers_schema: ClassVar[bool] = True

    kind: Literal["files"] = Field(description="A directory of files.")
    format: str = Field(
        description="`json`, `csv`, `text`, `parquet`, `orc`, `avro`, `xml` or `binaryFile`.", examples=["json"]
    )
    path: str = Field(
        description="The directory, a file or a pattern such as `data/2026-*`; a relative path starts at the bundle.",
        examples=["data/orders"],
    )

    @property
    def location(self) -> str:
        """The path of the directory."""
        return self.path

    @property
    def needs_schema(self) -> bool:
        """Whether the format's columns differ between files, so that an input needs a schema."""
        return self.format not in FIXED_SCHEMA_FORMATS
