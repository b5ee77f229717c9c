"""Folders of files as a sink."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from headrace.config.kinds.sink_model import PARTITION_BY, SinkModel
from headrace.config.value_types import Name, TupleOf


class FolderSink(SinkModel):
    """A folder of files; the environment gives its path."""

    kind_name: ClassVar[str] = "folder"
    label: ClassVar[str] = "a folder"
    plural: ClassVar[str] = "folders"
    implementation: ClassVar[str] = "headrace.io.sinks.folder_sink"
    native_outputs: ClassVar[tuple[str, ...]] = ("append",)
    is_located: ClassVar[bool] = True

    folder: Name | None = Field(
        default=None, description="The folder, by its name under `folders` of the environment.", examples=["exports"]
    )
    format: str | None = Field(
        default=None,
        description="The format of the files: `parquet`, `orc`, `json`, `csv` or `text`.",
        examples=["parquet"],
    )
    partition_by: TupleOf[str] = PARTITION_BY
