"""Schemas that an input declares."""

from __future__ import annotations

import pytest

from headrace.config.models import Read
from headrace.errors import ConfigurationError
from headrace.io.sources import open_input
from inputs import environment, files

NOT_A_SCHEMA = "id STRING"


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("type", "id STRNG"),
        ("comma", "id STRING,"),
        ("other_thing", f"{__name__}:NOT_A_SCHEMA"),
        ("missing", f"{__name__}:MISSING"),
    ],
)
def test_invalid_schema_is_an_error(spark, tmp_path, golden, name, schema):
    with pytest.raises(ConfigurationError) as error:
        open_input.open_input(spark, Read(source="it", schema_=schema), environment(it=files(tmp_path)))
    golden(f"sources/schema_{name}", str(error.value).replace(__name__, "module"))
