"""Outside data as rows: every format, what is refused, schemas, partitions, options."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StringType, StructType

from headrace.config.models import (
    Environment,
    FileSource,
    LocalEngine,
    RateSource,
    Read,
    Rule,
    Sink,
    Step,
    Tables,
    Watermark,
)
from headrace.errors import ConfigurationError, DataError
from headrace.expectations import verdict
from headrace.io.sources import file_source, open_input
from headrace.runtime import failures
from headrace.spark.columns import quote_name

PAIR = "id STRING, n INT"
DECLARED = StructType().add("id", StringType()).add("n", IntegerType())
NOT_A_SCHEMA = "id STRING"
EVERYTHING = (
    "id STRING, n INT, price DECIMAL(5,2), weight DOUBLE, at TIMESTAMP, day DATE, tags ARRAY<INT>, "
    "who STRUCT<name: STRING, age: INT>"
)

REFUSED = {
    "truncated": '{"id":"truncated","n":1',
    "garbage": "garbage",
    "text after the object": '{"id":"text"} trailing',
    "two objects": '{"id":"two"}{"id":"objects"}',
    "two objects with a space": '{"id":"two"} {"id":"objects"}',
    "a list's end": '{"id":"list"},',
    "a brace too many": '{"id":"brace"}}',
    "a bracket too many": '{"id":"bracket"}]',
    "what closes the parser's own list": '{"id":"closing"}]} and more',
    "NUL at the end": '{"id":"nul"}\0',
    "overflow": '{"id":"overflow","n":99999999999}',
    "text for a number": '{"id":"text","n":"abc"}',
    "a fraction for an integer": '{"id":"fraction","n":1.0}',
    "truth for a number": '{"id":"truth","n":true}',
    "text for a double": '{"id":"double","weight":"1.5"}',
    "a decimal too wide": '{"id":"decimal","price":123456.78}',
    "not a time": '{"id":"time","at":"yesterday"}',
    "not a date": '{"id":"date","day":"2026-02-31"}',
    "text in a list": '{"id":"tags","tags":[1,"x"]}',
    "no list": '{"id":"tags","tags":"x"}',
    "wrong type inside": '{"id":"inside","who":{"name":"a","age":"old"}}',
    "no object inside": '{"id":"object","who":"a"}',
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
    "an object as text": ('{"id":"an object as text","tags":null,"who":{}}', {"who": {"name": None, "age": None}}),
}
IGNORED = ["", "    "]


@dataclass(frozen=True)
class Case:
    """Files of one source, how they are read, and what they come to."""

    format: str
    files: dict[str, list[str]]
    wanted: list[dict[str, Any]]
    schema: str | None = None
    infer: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    quarantined: dict[str, list[str]] = field(default_factory=dict)


WRITTEN = ("parquet", "orc", "avro")  # by Spark
A1, B2 = {"id": "a", "n": 1}, {"id": "b", "n": 2}
LINES = ['{"id":"a","n":1}', '{"id":"b","n":2}']
CASES = {
    "text": Case("text", {"1.txt": ["one", "", "three"]}, [{"value": "one"}, {"value": ""}, {"value": "three"}]),
    "json": Case("json", {"1.json": LINES}, [A1, B2], PAIR),
    "json by import path": Case("json", {"1.json": LINES}, [A1, B2], f"{__name__}:DECLARED"),
    "json inferred": Case("json", {"1.json": LINES}, [A1, B2], infer=True),
    "json over several lines": Case(
        "json", {"1.json": ["{", '"id": "a",', '"n": 1', "}"]}, [A1], PAIR, options={"multiLine": True}
    ),
    "json lists over several lines": Case(
        "json",
        {"1.json": ["[", '{"id": "a", "n": 1},', '{"id": "b", "n": 2}', "]"], "2.json": ["[]"], "3.json": ["[1]"]},
        [A1, B2],
        PAIR,
        options={"multiLine": True},
        quarantined={"[1]\n": ["malformed"]},
    ),
    "xml": Case("xml", {"1.xml": ["<r><row><id>a</id><n>1</n></row></r>"]}, [A1], PAIR, options={"rowTag": "row"}),
    "json with its own options": Case(
        "json",
        {"1.json": ['{"id":"a","at":"31.12.2025"}']},
        [{"id": "a", "at": "2025-12-31"}],
        "id STRING, at DATE",
        options={"dateFormat": "dd.MM.yyyy"},
    ),
    "json whose first column is called value": Case(
        "json",
        {"1.json": ['{"value":1}', '{"value":']},
        [{"value": 1}],
        "value INT",
        quarantined={'{"value":': ["malformed"]},
    ),
    "csv": Case("csv", {"1.csv": ["a,1", "", "b,2"]}, [A1, B2], PAIR),
    "csv with a header": Case("csv", {"1.csv": ["id,n", "a,1"]}, [A1], PAIR, options={"header": True}),
    "csv with another separator": Case("csv", {"1.csv": ['"a";1']}, [A1], PAIR, options={"sep": ";"}),
    "csv that does not fit": Case(
        "csv",
        {"1.csv": ["a,1", "few", "many,1,2", "type,x", "over,99999999999", ",2"]},
        [A1, {"id": None, "n": 2}],
        PAIR,
        quarantined={raw: ["malformed"] for raw in ("few", "many,1,2", "type,x", "over,99999999999")},
    ),
    "json in partitions": Case(
        "json",
        {"country=DE/1.json": LINES[:1], "country=FR/1.json": LINES[1:]},
        [{**A1, "country": "DE"}, {**B2, "country": "FR"}],
        PAIR,
    ),
    "json in declared partitions": Case(
        "json", {"country=DE/1.json": LINES[:1]}, [{**A1, "country": "DE"}], f"{PAIR}, country STRING"
    ),
    "csv in partitions": Case(
        "csv",
        {"country=DE/1.csv": ["a,1", "x"]},
        [{**A1, "country": "DE"}],
        f"{PAIR}, country STRING",
        quarantined={"x": ["malformed"]},
    ),
    "json with odd names": Case(
        "json",
        {"1.json": ['{"user.id":"a","_raw":1}', "{"]},
        [{"user.id": "a", "_raw": 1}],
        "`user.id` STRING, _raw INT",
        quarantined={"{": ["malformed"]},
    ),
    "csv with odd names": Case(
        "csv",
        {"1.csv": ["a;1", "b;x"]},
        [{"user.id": "a", "_raw": 1}],
        "`user.id` STRING, _raw INT",
        options={"sep": ";"},
        quarantined={"b;x": ["malformed"]},
    ),
    "malformed": Case(
        "json",
        {"1.json": [*REFUSED.values(), *IGNORED], "2.json": [line for line, _ in ACCEPTED.values()]},
        [],
        EVERYTHING,
        options={"maxFilesPerTrigger": 1},
    ),
}


def environment(**given):
    return Environment(
        name="local", engine=LocalEngine(kind="local"), tables=Tables(root="none"), checkpoints="none", sources=given
    )


def files(path, format="json", **options):  # noqa: A002
    return FileSource(kind="files", format=format, path=str(path), options=options)


@pytest.fixture(scope="module")
def arrived(spark, tmp_path_factory):
    """All cases in one stream: the rows of each, and the number of batches that they took."""
    home = tmp_path_factory.mktemp("sources")
    given = spark.createDataFrame([("a", 1), ("b", 2)], PAIR)
    for format_ in WRITTEN:
        given.coalesce(1).write.format(format_).save(str(home / format_))
        CASES[format_] = Case(format_, {}, [A1, B2], PAIR)
    frames = {}
    for name, case in CASES.items():
        place = home / name.replace(" ", "-").replace(":", "")
        for file, lines in case.files.items():
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            (place / file).write_text("".join(f"{line}\n" for line in lines))
        read = Read(source="it", schema_=case.schema, infer=case.infer)
        frames[name] = open_input.open_input(spark, read, environment(it=files(place, case.format, **case.options)))
    as_json = {"ignoreNullFields": "false"}
    parts = [
        frame.select(
            F.lit(name).alias("name"), F.to_json(F.struct(*map(quote_name, frame.columns)), as_json).alias("row")
        )
        for name, frame in frames.items()
    ]
    together = parts[0]
    for part in parts[1:]:
        together = together.union(part)
    query = together.writeStream.format("memory").queryName("arrived").trigger(availableNow=True).start()
    query.awaitTermination()
    rows = {name: [] for name in CASES}
    for row in spark.table("arrived").collect():
        rows[row["name"]].append(json.loads(row["row"]))
    return rows, len(query.recentProgress)


def good(rows):
    kept = [row for row in rows if not row.get(verdict.VERDICT)]
    return [{key: value for key, value in row.items() if key != verdict.VERDICT} for row in kept]


def refused(rows):
    return {row[verdict.VERDICT]["raw"]: row[verdict.VERDICT] for row in rows if row.get(verdict.VERDICT)}


@pytest.mark.parametrize("name", [*(name for name in CASES if name != "malformed"), *WRITTEN])
def test_a_format_comes_in(arrived, name):
    rows, case = arrived[0][name], CASES[name]
    assert sorted(good(rows), key=str) == sorted(case.wanted, key=str)
    assert {raw: said["quarantined"] for raw, said in refused(rows).items()} == case.quarantined


@pytest.mark.parametrize("line", REFUSED.values(), ids=REFUSED)
def test_a_malformed_line_is_refused_with_the_line_as_it_was(arrived, line):
    said = refused(arrived[0]["malformed"])[line]
    assert (said["bad"], said["quarantined"]) == (True, ["malformed"])
    assert said["position"].endswith("/malformed/1.json")


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_line_that_can_be_read_is_a_row(arrived, name):
    (row,) = [row for row in good(arrived[0]["malformed"]) if row["id"] == name]
    assert row.items() >= ACCEPTED[name][1].items()


def test_blank_lines_are_no_rows_and_nothing_else_is_left_out(arrived):
    assert len(arrived[0]["malformed"]) == len(REFUSED) + len(ACCEPTED)


def test_the_sources_options_are_passed_on(arrived):
    assert arrived[1] == 2  # two files, maxFilesPerTrigger: 1


def test_only_what_can_be_refused_is_judged(spark, tmp_path):
    """What cannot be malformed and has no rule keeps Spark's own sink; a rule or a watermark is held everywhere."""
    spark.createDataFrame([("a", 1)], PAIR).write.parquet(str(tmp_path / "parquet"))
    (tmp_path / "text").mkdir()
    env = environment(
        parquet=files(tmp_path / "parquet", "parquet"),
        text=files(tmp_path / "text", "text"),
        rate=RateSource(kind="rate", rows_per_second=5),
        json=files(tmp_path / "text"),
    )

    def judged(source, **keys):
        return verdict.has_verdict(open_input.open_input(spark, Read(source=source, **keys), env))

    assert not judged("parquet", schema_=PAIR)
    assert judged("parquet", schema_=PAIR, expect=[Rule(not_null=["id"])])
    assert not judged("text")
    assert judged("text", expect=[Rule(matches={"value": "a+"})])
    assert not judged("rate")
    assert judged("rate", expect=[Rule(between={"value": [0, 9]})])
    assert judged("rate", watermark=Watermark(column="timestamp", delay="1 minute"))
    assert judged("json", schema_=PAIR)


def test_files_come_in_as_they_are(spark, tmp_path):
    (tmp_path / "picture.bin").write_bytes(b"\x00\xff")
    rows = open_input.open_input(spark, Read(source="it"), environment(it=files(tmp_path, "binaryFile")))
    query = rows.writeStream.format("memory").queryName("pictures").trigger(availableNow=True).start()
    query.awaitTermination()
    (row,) = spark.table("pictures").collect()
    assert row["path"].endswith("/picture.bin")
    assert (row["length"], bytes(row["content"])) == (2, b"\x00\xff")


def test_a_line_of_csv_that_a_rule_refuses_is_told_as_the_file_writes_it(spark, tmp_path):
    (tmp_path / "1.csv").write_text('a;"x;y";01.02.2026\n')
    env = environment(it=files(tmp_path, "csv", sep=";", dateFormat="dd.MM.yyyy"))
    read = Read(source="it", schema_="id STRING, text STRING, day DATE", expect=[Rule(one_of={"id": ["b"]})])
    rows = open_input.open_input(spark, read, env)
    rows.writeStream.format("memory").queryName("of_csv").trigger(availableNow=True).start().awaitTermination()
    (row,) = spark.table("of_csv").collect()
    assert row[verdict.VERDICT].raw == 'a;"x;y";01.02.2026'


def test_a_header_with_other_names_stops_the_step_and_is_named(spark, tmp_path):
    """Read by place, each row would be wrong without a sign of it."""
    (tmp_path / "1.csv").write_text("n,id\n1,a\n")
    env = environment(it=files(tmp_path, "csv", header=True))
    rows = open_input.open_input(spark, Read(source="it", schema_=PAIR), env)
    query = rows.writeStream.format("memory").queryName("other_names").trigger(availableNow=True).start()
    with suppress(StreamingQueryException):
        query.awaitTermination()
    step = Step(name="land", layer="bronze", reads={}, writes=[Sink(console=True)])
    said = failures.step_error(step, query.exception()).problems[0].message
    assert "CSV header does not conform to the schema" in said


def test_a_name_that_spark_reads_twice_stops_the_step_and_is_named(spark, tmp_path, monkeypatch):
    """On the local engine `headrace.LocalFiles` reads such files once; elsewhere Spark doubles rows of other files."""
    monkeypatch.setattr(file_source.java_compiler, "LOCAL_FILES", "another.FileSystem")
    for name in ("report[1]", "report1"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"id": name, "n": 1}))

    def read(name, **options):
        rows = open_input.open_input(spark, Read(source="it", schema_=PAIR), environment(it=files(tmp_path, **options)))
        query = rows.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
        with suppress(StreamingQueryException):
            query.awaitTermination()
        return query

    step = Step(name="land", layer="bronze", reads={}, writes=[Sink(console=True)])
    message = failures.step_error(step, read("refused_names").exception()).problems[0].message
    assert "Spark would repeat rows" in message
    assert "report%5B1%5D.json; set recursiveFileLookup: true" in message
    assert read("recursive_names", recursiveFileLookup=True).exception() is None
    assert sorted(row.id for row in spark.table("recursive_names").collect()) == ["report1", "report[1]"]


def test_a_tables_options_that_cannot_be_are_named(spark, tmp_path):
    env = environment().model_copy(update={"tables": Tables(root=str(tmp_path))})
    spark.range(1).write.format("delta").save(str(tmp_path / "orders"))
    with pytest.raises(DataError, match="table 'orders' cannot be read") as error:
        open_input.open_input(spark, Read(table="orders", static=True, options={"versionAsOf": 99}), env)
    assert error.value.problems[0].fix == "correct the input's options"


def test_rate_gives_numbered_rows(spark):
    rows = open_input.open_input(spark, Read(source="it"), environment(it=RateSource(kind="rate", rows_per_second=5)))
    assert rows.isStreaming
    assert rows.columns == ["timestamp", "value"]
    assert rows._jdf.queryExecution().analyzed().collectLeaves().head().extraOptions().get("rowsPerSecond") == "5"


def test_a_watermark_is_set_on_the_judged_time(spark, tmp_path):
    read = Read(source="it", schema_="id STRING, at TIMESTAMP", watermark=Watermark(column="at", delay="10 minutes"))
    rows = open_input.open_input(spark, read, environment(it=files(tmp_path)))
    assert "EventTimeWatermark" in rows._jdf.queryExecution().analyzed().toString()


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("type", "id STRNG"),
        ("comma", "id STRING,"),
        ("other_thing", f"{__name__}:NOT_A_SCHEMA"),
        ("missing", f"{__name__}:MISSING"),
    ],
)
def test_a_schema_that_is_none_is_named(spark, tmp_path, golden, name, schema):
    with pytest.raises(ConfigurationError) as error:
        open_input.open_input(spark, Read(source="it", schema_=schema), environment(it=files(tmp_path)))
    golden(f"sources/schema_{name}", str(error.value).replace(__name__, "module"))


def test_a_missing_directory_is_named(spark, golden):
    env = environment(it=files("/nowhere/orders"))
    with pytest.raises(DataError) as error:
        open_input.open_input(spark, Read(source="it", schema_=PAIR), env)
    golden("sources/missing_directory", str(error.value))


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("watermark", {"watermark": Watermark(column="when", delay="1 minute")}),
        ("rule", {"expect": [Rule(not_null=["idd"])]}),
    ],
)
def test_a_column_that_is_not_there_is_named(spark, tmp_path, golden, name, keys):
    with pytest.raises(ConfigurationError) as error:
        open_input.open_input(spark, Read(source="it", schema_=PAIR, **keys), environment(it=files(tmp_path)))
    golden(f"sources/missing_column_{name}", str(error.value))


def test_a_table_that_is_not_there_yet_is_named(spark, tmp_path, golden):
    env = environment().model_copy(update={"tables": Tables(root=str(tmp_path))})
    with pytest.raises(DataError) as error:
        open_input.open_input(spark, Read(table="orders"), env)
    golden("sources/missing_table", str(error.value).replace(str(tmp_path), "TABLES"))


def test_a_file_of_any_age_is_read(flow):
    flow.source("lines", "text")
    flow.steps("lines: {layer: bronze, reads: {lines: {source: lines}}, writes: {table: lines}}")
    for line, year in (("of 2099", 2099), ("of today", 2026), ("of 2001", 2001)):
        file = flow.feed("lines", line)
        os.utime(file, (datetime(year, 1, 1).timestamp(),) * 2)
        flow.run()
    assert sorted(row["value"] for row in flow.read("lines")) == ["of 2001", "of 2099", "of today"]


def test_a_reads_own_options_go_before_the_sources(spark, tmp_path):
    Path(tmp_path / "1.csv").write_text("a;1\n")
    read = Read(source="it", schema_=PAIR, options={"sep": ";"})
    rows = open_input.open_input(spark, read, environment(it=files(tmp_path, "csv", sep=",")))
    query = rows.writeStream.format("memory").queryName("own_options").trigger(availableNow=True).start()
    query.awaitTermination()
    assert [tuple(row)[:2] for row in spark.table("own_options").collect()] == [("a", 1)]
