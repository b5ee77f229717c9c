"""The query of a step: where its streams start."""

from __future__ import annotations

import pytest

from headrace.config.models import Read, Sink, Step
from headrace.runtime.step_query import with_first_version


@pytest.mark.parametrize(
    ("read", "options"),
    [
        (Read(table="created"), {"startingVersion": 0}),
        (Read(table="created", options={"maxFilesPerTrigger": 1}), {"maxFilesPerTrigger": 1, "startingVersion": 0}),
        (Read(table="created", options={"startingVersion": 3}), {"startingVersion": 3}),
        (Read(table="created", options={"startingTimestamp": "2026-01-01"}), {"startingTimestamp": "2026-01-01"}),
        (Read(table="created", static=True), {}),
        (Read(table="created", changes=True), {}),
        (Read(table="existing"), {}),
        (Read(source="lines"), {}),
    ],
)
def test_stream_of_a_table_that_the_run_created_starts_at_its_first_version(read, options):
    reader = Step(name="s", layer="silver", reads={"rows": read}, writes=[Sink(table="t")])
    assert with_first_version(reader, {"created"}).reads["rows"].options == options
