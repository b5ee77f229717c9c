"""The keys that a file may contain for a model, and the model at a key path."""

from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from headrace.config.locations import KeyPath


def keys_of(owner: type[BaseModel] | None) -> set[str]:
    """Return the keys that a file may contain for a model."""
    return {field.alias or name for name, field in owner.model_fields.items()} - {"name"} if owner else set()


def owner_at(model: type[BaseModel], path: KeyPath) -> type[BaseModel] | None:
    """Return the model that has the value at a path, to suggest its keys."""
    annotations: list[Any] = [model]
    for part in path:
        annotations = [inner for outer in annotations for inner in _annotations_of(outer, part)] or annotations
    models = (inner for inner in annotations if isinstance(inner, type) and issubclass(inner, BaseModel))
    return next(models, None)


def _annotations_of(annotation: Any, part: str | int) -> list[Any]:
    """Return the types of the value at a key or index of a value of this type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            if part == (field.alias or name):
                return _members(field.annotation)
            if name == "kind" and part in get_args(field.annotation):
                return [annotation]
        return []
    arguments = get_args(annotation)
    if get_origin(annotation) is dict:
        return _members(arguments[1])
    return _members(arguments[0]) if get_origin(annotation) is tuple else []


def _members(annotation: Any) -> list[Any]:
    """Return the types that an annotation allows, without Annotated and unions."""
    if get_origin(annotation) is Annotated:
        return _members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [member for part in get_args(annotation) for member in _members(part)]
    return [annotation]
