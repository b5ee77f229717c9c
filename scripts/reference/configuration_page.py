"""The reference page of the keys in pipeline and environment files, from their JSON Schemas."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml
from json_schemas import REFERENCE, Schema
from markdown_text import alternatives, page, table

from headrace.config.value_types import DURATION, ImportPath, Memory, Name, SecretName

INTRODUCTION = """
All keys of the files in `conf/pipelines/` and of the files `conf/<environment>.yml`. An unknown key is an error. The
guides and [Sources and sinks](../sources-and-sinks.md) describe how keys work together; `headrace schema` writes the
[schemas for editors](../guides/editor.md), which have the same content.

A key that is not marked as required may be omitted. In an environment file, a value may contain
references such as `${user}` to the `values` of the file.
"""
# Titles of sections whose models have other names.
TITLES = {"Pipeline": "Pipeline file", "Environment": "Environment file", "Read": "Input", "Rule": "Expectation"}


def _pattern(annotated: Any) -> str:
    """Return the pattern of a constrained type."""
    (pattern,) = (each.pattern for each in annotated.__metadata__ if getattr(each, "pattern", None))
    return str(pattern)


TYPE_OF_PATTERN = {
    DURATION.pattern: "duration",
    _pattern(Name): "name",
    _pattern(ImportPath): "import path",
    _pattern(Memory): "size, such as `512m` or `2g`",
    _pattern(SecretName): "`scope/key`",
}
PROPER_NAMES = ("Databricks", "Kafka", "Spark")
TYPES = {"string": "text", "integer": "whole number", "number": "number", "boolean": "boolean"}


def make_configuration_page(schemas: dict[str, Schema]) -> str:
    """Return the page."""
    sections: dict[str, str] = {}
    for name, schema in schemas.items():
        file = name.capitalize()
        for model in (file, *_order(schema, schema["definitions"])):
            sections.setdefault(model, _section(model, schema if model == file else schema["definitions"][model]))
    return page("Configuration", INTRODUCTION, filter(None, sections.values()))


def _order(schema: Any, definitions: dict[str, Any]) -> list[str]:
    """Return the names of the definitions in the order in which the file refers to them, each followed by its own."""
    found: list[str] = []
    for name in re.findall(r"#/definitions/(\w+)", json.dumps({**schema, "definitions": {}})):
        for each in (name, *_order(definitions[name], definitions)):
            if each not in found:
                found.append(each)
    return found


def _section(model: str, schema: Any) -> str:
    """Return the section of a model; empty for a choice between models."""
    if "properties" not in schema:
        return ""
    level = "##" if model in ("Pipeline", "Environment") else "###"
    rows = [
        [f"`{key}`", _type_of(value), _default(key, value, schema), value.get("description", ""), _example(key, value)]
        for key, value in sorted(schema["properties"].items(), key=lambda item: _rank(item[0], schema))
    ]
    description = " ".join(schema["description"].split())
    return "\n\n".join(
        [f"{level} {title_of(model)}", description, table(["key", "type", "default", "meaning", "example"], rows)]
    )


def _rank(key: str, model: Any) -> int:
    """Return where a key is listed: keys that are required first, options for Spark last."""
    return {"options": 2, "settings": 2}.get(key, 0 if key in model.get("required", []) else 1)


def title_of(model: str) -> str:
    """Return the title of a model's section: "KafkaSource" -> "Kafka source"."""
    return TITLES.get(model) or re.sub(r"(?<=[a-z])([A-Z])", lambda match: " " + match[1].lower(), model)


def _type_of(schema: Any) -> str:
    """Return the type of a value as text."""
    if "$ref" in schema:
        model = schema["$ref"].rpartition("/")[2]
        if model == "Sink":
            return "[sink](../sources-and-sinks.md#sinks)"
        title = title_of(model)
        label = title if title.startswith(PROPER_NAMES) else f"{title[0].lower()}{title[1:]}"
        return f"[{label}](#{title.lower().replace(' ', '-')})"
    if "allOf" in schema:
        return _type_of(schema["allOf"][0])
    if parts := schema.get("anyOf") or schema.get("oneOf"):
        kinds = [_type_of(part) for part in parts if part not in (REFERENCE, {"type": "null"})]
        return alternatives(kinds)
    if "enum" in schema:
        return alternatives([f"`{value}`" for value in schema["enum"]])
    if "const" in schema:
        return f"`{json.dumps(schema['const']).strip(chr(34))}`"
    if "pattern" in schema:
        return TYPE_OF_PATTERN[schema["pattern"]]
    if schema.get("type") == "array":
        if isinstance(schema["items"], list):
            return "list of two values"
        return f"list of {_type_of(schema['items'])}"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties", True)
        return f"mapping of names to {_type_of({} if values is True else values)}"
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    return alternatives([TYPES[name] for name in names if name != "null"]) if names else "any value"


def _default(key: str, schema: Any, model: Any) -> str:
    if key in model.get("required", []):
        return "required"
    default = schema.get("default")
    return "" if default in (None, [], {}) else f"`{json.dumps(default).strip(chr(34))}`"


def _example(key: str, schema: Any) -> str:
    """Return the examples of a key as YAML."""
    texts = [
        yaml.safe_dump({key: example}, default_flow_style=True, width=1000).strip()[1:-1]
        for example in schema.get("examples", ())
    ]
    return "<br>".join(f"`{text}`" for text in texts)
