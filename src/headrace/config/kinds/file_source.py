"""Files that arrive in a directory, as a source."""

from __future__ import annotations

from typing import ClassVar, Literal

from headrace.config.kinds.source_model import SourceModel

WITHOUT_SCHEMA = ("text", "binaryFile")  # formats whose columns are always the same


class FileSource(SourceModel):
    """Files that arrive in a directory."""

    implementation: ClassVar[str] = "headrace.io.sources.file_source"
    infers_schema: ClassVar[bool] = True

    kind: Literal["files"]
    format: str
    path: str

    @property
    def location(self) -> str:
        """The path."""
        return self.path

    @property
    def needs_schema(self) -> bool:
        """Whether the format has no columns of its own."""
        return self.format not in WITHOUT_SCHEMA
