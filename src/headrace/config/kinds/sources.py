"""The registry of source kinds: the models in the modules `*_source`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Union

from pydantic import Field

from headrace.config.kinds.discovery import find_kinds
from headrace.config.kinds.source_model import SourceModel

SOURCES = find_kinds(SourceModel, "_source")
if TYPE_CHECKING:
    Source = SourceModel
else:
    # `kind` selects the model.
    Source = Annotated[Union[SOURCES], Field(discriminator="kind")]  # noqa: UP007
