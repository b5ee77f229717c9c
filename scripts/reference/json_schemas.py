"""The JSON Schemas of pipeline and environment files, from the models of the configuration.

The schemas are of draft 7, which the YAML language server of editors reads. They contain what a schema can express:
keys, types, allowed values, and keys that exclude each other. `headrace check` finds the other mistakes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import TypeAdapter

from headrace.config.checks.step_checks import SOURCE_KEYS, UPSERT_KEYS
from headrace.config.kinds.expectation import EXPECTATIONS
from headrace.config.kinds.sinks import SINKS, Sink
from headrace.config.models import Environment, Pipeline

Schema = dict[str, Any]
Keys = tuple[str, ...]
# The models whose entries must have exactly one of these groups of keys.
EXACTLY_ONE: dict[str, tuple[Keys, ...]] = {
    "Read": (("source",), ("table",)),
    "Rule": tuple((kind,) for kind in EXPECTATIONS),
    "KafkaSource": (("topics",), ("pattern",)),
    "Tables": (("root",), ("catalog", "schema")),
}
REFERENCE = {"type": "string", "pattern": r"\$\{"}


def make_schemas() -> dict[str, Schema]:
    """Return each schema by its name."""
    environment = _schema("A Headrace environment", Environment)
    for part in [environment, *environment["definitions"].values()]:
        for key, value in part["properties"].items():
            if key != "values":
                part["properties"][key] = _allow_reference(value)
    return {"pipeline": _schema("A Headrace pipeline", Pipeline), "environment": environment}


def _schema(title: str, model: type) -> Schema:
    """Return the schema of a kind of file."""
    generated = TypeAdapter(model).json_schema(ref_template="#/definitions/{model}")
    definitions = {name: _model_schema(name, schema) for name, schema in generated.pop("$defs").items()}
    if "Sink" in definitions:
        definitions |= _sinks(definitions.pop("Sink")["properties"])
        writes = definitions["Step"]["properties"]["writes"]
        sinks = {key: writes.pop(key) for key in ("type", "items")}
        writes["anyOf"] = [sinks["items"], sinks]  # one sink, or a list of sinks
    file = {**_model_schema(model.__name__, generated), "title": title}
    return {"$schema": "http://json-schema.org/draft-07/schema#", **file, "definitions": definitions}


def _model_schema(model: str, schema: Schema) -> Schema:
    """Return the schema of a model as draft 7: without `name`, and with rules for keys that exclude each other."""
    schema = _as_draft_7(schema)
    properties = schema["properties"]
    if properties.pop("name", None):  # comes from the file's name, or from the key of the mapping
        schema["required"].remove("name")
    if model in EXACTLY_ONE:
        schema["oneOf"] = list(_exclusive_groups(EXACTLY_ONE[model]))
    if model == "Read":
        reads_table = {"required": ["table"]}
        infers = {"properties": {"infer": {"const": True}}, "required": ["infer"]}
        schema["allOf"] = [
            {"if": reads_table, "then": _without(key.rstrip("_") for key in SOURCE_KEYS)},
            {"if": infers, "then": _without(["schema"])},
        ]
    return schema


def _exclusive_groups(groups: tuple[Keys, ...]) -> Iterator[Schema]:
    """Yield, for each group, the schema of a mapping that has all of its keys and none of the others."""
    for group in groups:
        yield {"required": list(group), **_without(key for other in groups for key in other if other != group)}


def _without(keys: Iterable[str]) -> Schema:
    """Return the schema of a mapping without these keys."""
    return {"not": {"anyOf": [{"required": [key]} for key in keys]}}


def _sinks(properties: dict[str, Schema]) -> dict[str, Schema]:
    """Return one schema for each kind of sink, and `Sink`, which accepts any one of them.

    `properties` are the keys of all kinds.
    """
    keys_of_kinds = {key for kind in SINKS.values() for key in kind.model_fields}
    shared = Sink.model_fields.keys() - keys_of_kinds
    definitions = {
        model.__name__: {
            "type": "object",
            "description": model.__doc__,
            "properties": {
                key: value for key, value in properties.items() if key in shared | model.model_fields.keys()
            },
            "required": [kind],
            "additionalProperties": False,
        }
        for kind, model in SINKS.items()
    }
    definitions["TableSink"] |= {
        "if": {"properties": {"mode": {"const": "upsert"}}, "required": ["mode"]},
        "then": {"required": list(UPSERT_KEYS)},
        "else": _without(UPSERT_KEYS),
    }
    return {**definitions, "Sink": {"oneOf": [{"$ref": f"#/definitions/{name}"} for name in definitions]}}


def _as_draft_7(schema: Any) -> Any:
    """Convert a schema of pydantic to draft 7, in a form that editors show well.

    Drop generated titles and `discriminator`, report keys that do not match a pattern, and merge plain types into one
    list.
    """
    if isinstance(schema, list):
        return [_as_draft_7(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    result = {
        key: {name: _as_draft_7(each) for name, each in value.items()} if key == "properties" else _as_draft_7(value)
        for key, value in schema.items()
        if key not in ("title", "discriminator", "examples")
    }
    if "examples" in schema:
        result["examples"] = schema["examples"]
    if "patternProperties" in result:
        ((pattern, value),) = result.pop("patternProperties").items()
        result |= {"propertyNames": {"pattern": pattern}, "additionalProperties": value}
    if "prefixItems" in result:
        result["items"] = result.pop("prefixItems")
    if "$ref" in result and len(result) > 1:  # draft 7 ignores the other keys beside $ref
        result["allOf"] = [{"$ref": result.pop("$ref")}]
    types = [each.get("type") if each.keys() == {"type"} else None for each in result.get("anyOf", ())]
    if types and all(types):
        del result["anyOf"]
        result["type"] = [each for each in types if each != "integer" or "number" not in types]  # integers are numbers
    return result


def _allow_reference(schema: Schema) -> Schema:
    """Return the schema extended to accept a reference such as `${user}`.

    Schemas that already accept any text, and those of mappings and lists without values to extend, are unchanged.
    """
    if isinstance(schema.get("additionalProperties"), dict):
        return {**schema, "additionalProperties": _allow_reference(schema["additionalProperties"])}
    alternatives = schema.get("anyOf") or schema.get("oneOf") or [schema]
    if not any(
        {"pattern", "enum"} & each.keys() or each.get("type") in ("integer", "boolean") for each in alternatives
    ):
        return schema
    annotations = {key: schema[key] for key in ("description", "default", "examples") if key in schema}
    types = [{key: each[key] for key in each if key not in annotations} for each in alternatives]
    return {**annotations, "anyOf": [*types, REFERENCE]}
