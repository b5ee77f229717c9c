"""Convert values to and from the JSON of state.json, lock.json and saved plans."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

D = TypeVar("D", bound="DataclassInstance")

Document = dict[str, Any]

# Fields whose key in the files differs from their name: files of earlier versions must stay readable.
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
}


def to_document(value: DataclassInstance) -> Document:
    """Convert a dataclass, recursively, to its stored JSON form."""
    return asdict(value, dict_factory=lambda pairs: {STORED_KEYS.get(name, name): item for name, item in pairs})


def from_document(kind: type[D], document: Document) -> D:
    """Return a value of this class; raise TypeError for missing or unknown keys."""
    names = {STORED_KEYS.get(field.name, field.name): field.name for field in fields(kind)}
    return kind(**{names.get(key, key): item for key, item in document.items()})
