"""JSON records: which lines are rows, and which are malformed."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import functions as F

from headrace.config.models import Read
from headrace.io.sources import open_input
from headrace.spark.columns import quote_name
from inputs import environment, files, good_rows, verdicts

SCHEMA = (
    "id STRING, n INT, price DECIMAL(5,2), weight DOUBLE, at TIMESTAMP, day DATE, tags ARRAY<INT>, "
    "who STRUCT<name: STRING, age: INT>"
)

MALFORMED = {
    "truncated": '{"id":"truncated","n":1',
    "garbage": "garbage",
    "text after the object": '{"id":"text"} trailing',
    "two objects": '{"id":"two"}{"id":"objects"}',
    "two objects with a space": '{"id":"two"} {"id":"objects"}',
    "a comma after the object": '{"id":"list"},',
    "a brace too many": '{"id":"brace"}}',
    "a bracket too many": '{"id":"bracket"}]',
    "the end of the list that the parser adds": '{"id":"closing"}]} and more',
    "NUL at the end": '{"id":"nul"}\0',
    "overflow": '{"id":"overflow","n":99999999999}',
    "text for a number": '{"id":"text","n":"abc"}',
    "a fraction for an integer": '{"id":"fraction","n":1.0}',
    "a boolean for a number": '{"id":"truth","n":true}',
    "text for a double": '{"id":"double","weight":"1.5"}',
    "a decimal too wide": '{"id":"decimal","price":123456.78}',
    "not a time": '{"id":"time","at":"yesterday"}',
    "not a date": '{"id":"date","day":"2026-02-31"}',
    "text in a list": '{"id":"tags","tags":[1,"x"]}',
    "text for a list": '{"id":"tags","tags":"x"}',
    "wrong type inside": '{"id":"inside","who":{"name":"a","age":"old"}}',
    "text for an object inside": '{"id":"object","who":"a"}',
    "null": "null",
    "a number": "5",
    "a text": '"text"',
    "a list of objects": '[{"id":"list"}]',
    "an empty list": "[]",
    "not a number": '{"id":"nan","weight":NaN}',
    "single quotes": "{'id':'single'}",
}
ACCEPTED = {
    "plain": ('{"id":"plain","n":7}', {"n": 7}),
    "spaces around": ('  {"id":"spaces around","n":7}  ', {"n": 7}),
    "an unknown field": ('{"id":"an unknown field","n":1,"colour":"red"}', {"n": 1}),
    "a missing field": ('{"id":"a missing field"}', {"n": None, "who": None}),
    "null in a field": ('{"id":"null in a field","n":null}', {"n": None}),
    "one key twice: the last": ('{"id":"one key twice: the last","n":1,"n":2}', {"n": 2}),
    "nested": ('{"id":"nested","tags":[1,2],"who":{"name":"a","age":3}}', {"who": {"name": "a", "age": 3}}),
    "a decimal as text": ('{"id":"a decimal as text","price":"1.5"}', {"price": 1.5}),
    "a decimal is rounded": ('{"id":"a decimal is rounded","price":1.239}', {"price": 1.24}),
    "an empty object": ('{"id":"an empty object","tags":null,"who":{}}', {"who": {"name": None, "age": None}}),
}
BLANK = ["", "    "]


@pytest.fixture(scope="module")
def batches(spark, tmp_path_factory):
    """Two files, read in one batch each: the rows of the malformed lines, and those of the good ones."""
    directory = tmp_path_factory.mktemp("json") / "malformed"
    directory.mkdir()
    files_of_lines = {"1.json": [*MALFORMED.values(), *BLANK], "2.json": [line for line, _ in ACCEPTED.values()]}
    for file, lines in files_of_lines.items():
        (directory / file).write_text("".join(f"{line}\n" for line in lines))
    read = Read(source="it", schema_=SCHEMA)
    frame = open_input.open_input(spark, read, environment(it=files(directory, maxFilesPerTrigger=1)))
    row = F.to_json(F.struct(*map(quote_name, frame.columns)), {"ignoreNullFields": "false"})
    rows = frame.select(row.alias("row"))
    query = rows.writeStream.format("memory").queryName("json_records").trigger(availableNow=True).start()
    query.awaitTermination()
    return [json.loads(row["row"]) for row in spark.table("json_records").collect()], len(query.recentProgress)


@pytest.mark.parametrize("line", MALFORMED.values(), ids=MALFORMED)
def test_malformed_line_is_quarantined_unchanged(batches, line):
    verdict = verdicts(batches[0])[line]
    assert (verdict["bad"], verdict["quarantined"]) == (True, ["malformed"])
    assert verdict["position"].endswith("/malformed/1.json")


@pytest.mark.parametrize("name", ACCEPTED)
def test_valid_line_is_a_row(batches, name):
    (row,) = [row for row in good_rows(batches[0]) if row["id"] == name]
    assert row.items() >= ACCEPTED[name][1].items()


def test_only_blank_lines_are_left_out(batches):
    assert len(batches[0]) == len(MALFORMED) + len(ACCEPTED)


def test_options_of_the_source_reach_spark(batches):
    assert batches[1] == 2  # two files, maxFilesPerTrigger: 1
