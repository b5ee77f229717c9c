"""Validate YAML files with the JSON Schemas, as an editor does."""

from __future__ import annotations

import json
from functools import cache

import yaml
from jsonschema import Draft7Validator

from headrace.config.schema_files import schema


def schema_errors(kind: str, text: str) -> list[str]:
    """Return the errors of a pipeline or environment file; an error if it is not YAML."""
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        return [str(error)]
    return [error.message for error in _validator(kind).iter_errors(data)]


@cache
def _validator(kind: str) -> Draft7Validator:
    definition = json.loads(schema(kind))
    Draft7Validator.check_schema(definition)
    return Draft7Validator(definition)
