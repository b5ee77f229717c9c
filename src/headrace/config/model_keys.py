"""Look up the keys that a YAML file may contain for a model, and the model of the mapping at a key path."""

from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from headrace.config.locations import KeyPath


def keys_of(model: type[BaseModel] | None) -> set[str]:
    """Return the keys that a file may contain for a model; an empty set if `model` is None."""
    if model is None:
        return set()
    keys = {field.alias or name for name, field in model.model_fields.items()}
    return keys - {"name"}  # the name comes from the file's name or from the key of the mapping


def model_at(root_model: type[BaseModel], path: KeyPath) -> type[BaseModel] | None:
    """Return the model of the mapping at a path in `root_model`; None if no model describes the value at the path.

    `path` is the location of an error of Pydantic: a key path to which the names of union members have been added.
    """
    types: list[Any] = [root_model]
    for part in path:
        # A part for which there are no types is the name of a union member: it does not change the types.
        types = [inner for outer in types for inner in _types_at(outer, part)] or types
    models = (candidate for candidate in types if isinstance(candidate, type) and issubclass(candidate, BaseModel))
    return next(models, None)


def _types_at(outer: Any, part: str | int) -> list[Any]:
    """Return the types that the value at a key or index may have, in a value of the type `outer`.

    Return an empty list if values of this type have no such key or index.
    """
    if isinstance(outer, type) and issubclass(outer, BaseModel):
        for name, field in outer.model_fields.items():
            if part == (field.alias or name):
                return _union_members(field.annotation)
            if name == "kind" and part in get_args(field.annotation):
                return [outer]  # the part is the kind by which Pydantic selected this model from a union
        return []
    arguments = get_args(outer)
    if get_origin(outer) is dict:
        return _union_members(arguments[1])
    return _union_members(arguments[0]) if get_origin(outer) is tuple else []


def _union_members(annotation: Any) -> list[Any]:
    """Return the types of a union, or the annotation itself if it is not a union. Annotated is removed."""
    if get_origin(annotation) is Annotated:
        return _union_members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [member for part in get_args(annotation) for member in _union_members(part)]
    return [annotation]
