"""A directory of files as a source."""

from __future__ import annotations

from typing import ClassVar, Literal

from headrace.config.kinds.source_model import SourceModel

FIXED_SCHEMA_FORMATS = ("text", "binaryFile")  # Spark defines the columns of these formats


class FileSource(SourceModel):
    """A directory; its files, and those added later, are the source's data."""

    implementation: ClassVar[str] = "headrace.io.sources.file_source"
    infers_schema: ClassVar[bool] = True

    kind: Literal["files"]
    format: str
    path: str

    @property
    def location(self) -> str:
        """The path of the directory."""
        return self.path

    @property
    def needs_schema(self) -> bool:
        """Whether the format's columns differ between files, so that an input needs a schema."""
        return self.format not in FIXED_SCHEMA_FORMATS
