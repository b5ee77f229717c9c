"""Files of each format as rows: schemas, options, partitions, names of columns, malformed records."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StringType, StructType

from headrace.config.models import Read, Rule, Sink, Step
from headrace.expectations import verdict
from headrace.io.sources import file_source, open_input
from headrace.runtime import failures
from headrace.spark.columns import quote_name
from inputs import environment, files, good_rows, verdicts

PAIR = "id STRING, n INT"
DECLARED = StructType().add("id", StringType()).add("n", IntegerType())
WRITTEN = ("parquet", "orc", "avro")  # by Spark


@dataclass(frozen=True)
class Case:
    """Files of one source, how they are read, and the rows and quarantined records that they have."""

    format: str
    files: dict[str, list[str]]
    rows: list[dict[str, Any]]
    schema: str | None = None
    infer: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    quarantined: dict[str, list[str]] = field(default_factory=dict)


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
    "json with a column named value": Case(
        "json",
        {"1.json": ['{"value":1}', '{"value":']},
        [{"value": 1}],
        "value INT",
        quarantined={'{"value":': ["malformed"]},
    ),
    "csv": Case("csv", {"1.csv": ["a,1", "", "b,2"]}, [A1, B2], PAIR),
    "csv with a header": Case("csv", {"1.csv": ["id,n", "a,1"]}, [A1], PAIR, options={"header": True}),
    "csv with another separator": Case("csv", {"1.csv": ['"a";1']}, [A1], PAIR, options={"sep": ";"}),
    "csv with lines that do not fit": Case(
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
    "json with special names": Case(
        "json",
        {"1.json": ['{"user.id":"a","_raw":1}', "{"]},
        [{"user.id": "a", "_raw": 1}],
        "`user.id` STRING, _raw INT",
        quarantined={"{": ["malformed"]},
    ),
    "csv with special names": Case(
        "csv",
        {"1.csv": ["a;1", "b;x"]},
        [{"user.id": "a", "_raw": 1}],
        "`user.id` STRING, _raw INT",
        options={"sep": ";"},
        quarantined={"b;x": ["malformed"]},
    ),
    **{format_: Case(format_, {}, [A1, B2], PAIR) for format_ in WRITTEN},
}


@pytest.fixture(scope="module")
def rows_of(spark, tmp_path_factory):
    """The rows of each case; all are read by one stream."""
    home = tmp_path_factory.mktemp("sources")
    pairs = spark.createDataFrame([("a", 1), ("b", 2)], PAIR)
    for format_ in WRITTEN:
        pairs.coalesce(1).write.format(format_).save(str(home / format_))
    frames = {}
    for name, case in CASES.items():
        directory = home / name.replace(" ", "-").replace(":", "")
        for file, lines in case.files.items():
            (directory / file).parent.mkdir(parents=True, exist_ok=True)
            (directory / file).write_text("".join(f"{line}\n" for line in lines))
        read = Read(source="it", schema_=case.schema, infer=case.infer)
        source = files(directory, case.format, **case.options)
        frames[name] = open_input.open_input(spark, read, environment(it=source))
    as_json = {"ignoreNullFields": "false"}
    parts = [
        frame.select(
            F.lit(name).alias("name"), F.to_json(F.struct(*map(quote_name, frame.columns)), as_json).alias("row")
        )
        for name, frame in frames.items()
    ]
    union = parts[0]
    for part in parts[1:]:
        union = union.union(part)
    query = union.writeStream.format("memory").queryName("formats").trigger(availableNow=True).start()
    query.awaitTermination()
    rows = {name: [] for name in CASES}
    for row in spark.table("formats").collect():
        rows[row["name"]].append(json.loads(row["row"]))
    return rows


@pytest.mark.parametrize("name", CASES)
def test_format_is_read(rows_of, name):
    rows, case = rows_of[name], CASES[name]
    assert sorted(good_rows(rows), key=str) == sorted(case.rows, key=str)
    assert {raw: verdict["quarantined"] for raw, verdict in verdicts(rows).items()} == case.quarantined


def test_binary_files_are_read_whole(spark, tmp_path):
    (tmp_path / "picture.bin").write_bytes(b"\x00\xff")
    rows = open_input.open_input(spark, Read(source="it"), environment(it=files(tmp_path, "binaryFile")))
    query = rows.writeStream.format("memory").queryName("pictures").trigger(availableNow=True).start()
    query.awaitTermination()
    (row,) = spark.table("pictures").collect()
    assert row["path"].endswith("/picture.bin")
    assert (row["length"], bytes(row["content"])) == (2, b"\x00\xff")


def test_raw_record_of_a_csv_row_is_written_as_in_its_file(spark, tmp_path):
    (tmp_path / "1.csv").write_text('a;"x;y";01.02.2026\n')
    source = files(tmp_path, "csv", sep=";", dateFormat="dd.MM.yyyy")
    read = Read(source="it", schema_="id STRING, text STRING, day DATE", expect=[Rule(one_of={"id": ["b"]})])
    rows = open_input.open_input(spark, read, environment(it=source))
    rows.writeStream.format("memory").queryName("of_csv").trigger(availableNow=True).start().awaitTermination()
    (row,) = spark.table("of_csv").collect()
    assert row[verdict.VERDICT].raw == 'a;"x;y";01.02.2026'


def test_csv_header_with_other_names_stops_the_step(spark, tmp_path):
    """By position, Spark would read each row wrong, without any sign of it."""
    (tmp_path / "1.csv").write_text("n,id\n1,a\n")
    source = files(tmp_path, "csv", header=True)
    rows = open_input.open_input(spark, Read(source="it", schema_=PAIR), environment(it=source))
    query = rows.writeStream.format("memory").queryName("other_names").trigger(availableNow=True).start()
    with suppress(StreamingQueryException):
        query.awaitTermination()
    step = Step(name="land", layer="bronze", reads={}, writes=[Sink(console=True)])
    message = failures.step_error(step, query.exception()).problems[0].message
    assert "CSV header does not conform to the schema" in message


def test_file_name_with_glob_characters_stops_the_step(spark, tmp_path, monkeypatch):
    """On the local engine `headrace.LocalFiles` reads such files once; elsewhere Spark doubles rows of other files."""
    monkeypatch.setattr(file_source.java_compiler, "LOCAL_FILES", "another.FileSystem")
    for name in ("report[1]", "report1"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"id": name, "n": 1}))

    def run(name, **options):
        source = environment(it=files(tmp_path, **options))
        rows = open_input.open_input(spark, Read(source="it", schema_=PAIR), source)
        query = rows.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
        with suppress(StreamingQueryException):
            query.awaitTermination()
        return query

    step = Step(name="land", layer="bronze", reads={}, writes=[Sink(console=True)])
    message = failures.step_error(step, run("glob_names").exception()).problems[0].message
    assert "Spark would repeat rows" in message
    assert "report%5B1%5D.json; set recursiveFileLookup: true" in message
    assert run("recursive_names", recursiveFileLookup=True).exception() is None
    assert sorted(row.id for row in spark.table("recursive_names").collect()) == ["report1", "report[1]"]


def test_files_of_any_age_are_read(flow):
    flow.source("lines", "text")
    flow.steps("lines: {layer: bronze, reads: {lines: {source: lines}}, writes: {table: lines}}")
    for line, year in (("of 2099", 2099), ("of today", 2026), ("of 2001", 2001)):
        file = flow.feed("lines", line)
        os.utime(file, (datetime(year, 1, 1).timestamp(),) * 2)
        flow.run()
    assert sorted(row["value"] for row in flow.read("lines")) == ["of 2001", "of 2099", "of today"]


def test_encoding_that_only_legacy_java_charsets_have(flow):
    flow.source("rows", "json", encoding="windows-1252")
    (flow.directory / "data" / "rows" / "1").write_bytes('{"id":"10 €","n":1}'.encode("cp1252"))
    flow.steps(f"""
        land:
          layer: bronze
          reads: {{rows: {{source: rows, schema: "{PAIR}"}}}}
          writes: {{table: landed}}
          settings: {{spark.sql.legacy.javaCharsets: true}}
        """)
    flow.run()
    assert flow.read("landed") == [{"id": "10 €", "n": 1}]


def test_inferred_schema_has_no_column_of_malformed_records(spark, tmp_path):
    (tmp_path / "1").write_bytes('{"id":"Jürgen","n":1}\n'.encode("latin-1") + b"{\n")
    source = files(tmp_path, "json", encoding="ISO-8859-1")
    assert file_source.inferred_schema(spark, source).names == ["id", "n"]
