"""Convert values to and from the JSON of state.json, lock.json and saved plans, and to the JSON output of commands."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

D = TypeVar("D", bound="DataclassInstance")

Document = dict[str, Any]

# Field name -> key in the JSON, for fields that were renamed. The keys stay, so that older files remain readable, and
# scripts can read the output of newer versions.
STORED_KEYS = {
    "command": "what",
    "deployed_release": "before",
    "is_paused": "held",
    "needs_restart": "restart",
    "outcome": "ended",
    "previous_jobs": "before",
    "promoted_from": "came_from",
    "request_files": "requests",
    "returned_settings": "told",  # stored key
    "runs_continuously": "goes_on",  # stored key
    "shown_run": "last",
}


def to_document(value: DataclassInstance) -> Document:
    """Convert a value of a dataclass, and the dataclasses in it, to their stored JSON form."""
    return asdict(value, dict_factory=lambda pairs: {STORED_KEYS.get(name, name): item for name, item in pairs})


def from_document(kind: type[D], document: Document) -> D:
    """Convert the stored JSON form to a value of a dataclass; raise TypeError for missing or unknown keys.

    Nested values must be converted already.
    """
    names = {STORED_KEYS.get(field.name, field.name): field.name for field in fields(kind)}
    return kind(**{names.get(key, key): item for key, item in document.items()})
