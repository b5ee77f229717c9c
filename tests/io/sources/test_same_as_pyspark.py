"""Steps read the same rows as plain PySpark: partitioned, compressed, encoded and malformed files of each format."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from flows import Flow

ROWS = [("Jürgen", 1), ("b", 2)]
PAIR = "id STRING, n INT"
CORRUPT = "_corrupt_record"
BINARY = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY, k STRING"
WRITTEN = ("parquet", "orc", "avro")  # by Spark
ONE = {"json": '{"id":"Jürgen","n":1}\n', "csv": "Jürgen,1\n", "text": "Jürgen\n"}
ONE["xml"] = "<rows><row><id>Jürgen</id><n>1</n></row></rows>"
OPTIONS: dict[str, dict[str, Any]] = {"xml": {"rowTag": "row"}}
MALFORMED = {
    "json": '{"id":"a","n":1}\n{"id":"b","n":"x"}\n{\n',
    "csv": "a,1\nb,x\nfew\n",
    "xml": "<rows><row><id>a</id><n>1</n></row><row><id>b</id><n>x</n></row></rows>",
}


@dataclass(frozen=True)
class Case:
    """A directory of files, how it is read, and what differs from plain PySpark on purpose."""

    format: str
    files: dict[str, bytes]
    schema: str | None = PAIR
    options: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] | None = None  # instead of plain PySpark's rows
    quarantined: set[str] | None = None


def schema_of(format_: str, columns: str = "") -> str | None:
    own = "line STRING" if format_ == "text" else PAIR
    return f"{own}, {columns}" if columns else None if format_ == "text" else own


def all_cases() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for name, text in ONE.items():
        options, data = OPTIONS.get(name, {}), text.encode()
        cases[f"{name} plain"] = Case(name, {"1": data, "folder/2": data}, schema_of(name), options)
        cases[f"{name} gzip"] = Case(name, {"1.gz": gzip.compress(data)}, schema_of(name), options)
        folders = {"Country=DE/hour=05/v=1.10/1": data, "Country=a%2Fb +%C3%BC/hour=06/v=1e3/2": data}
        folders["Country=__HIVE_DEFAULT_PARTITION__/hour=__HIVE_DEFAULT_PARTITION__/v=x=y/3"] = data
        declared = schema_of(name, "hour STRING, country STRING, v STRING")
        cases[f"{name} partitioned"] = Case(name, folders, declared, options)
    for name in ("json", "csv"):
        cases[f"{name} undeclared"] = Case(name, {"n2=05/value=x/1": ONE[name].encode()})
    for name in ("json", "csv", "text"):
        for encoding in ("ISO-8859-1", "UTF-16LE"):
            options = {"encoding": encoding, "lineSep": "\n"}
            expected = [{"value": "Jürgen"}] if name == "text" else None  # plain PySpark does not decode text
            files = {"1": ONE[name].encode(encoding)}
            cases[f"{name} {encoding}"] = Case(name, files, schema_of(name), options, rows=expected)
    utf16 = ONE["json"].encode("utf-16")
    cases["json UTF-16"] = Case("json", {"1": utf16}, options={"encoding": "UTF-16", "multiLine": True})
    expected = [{"id": "Jürgen", "n": 1}]
    bom = ("\ufeff" + ONE["json"]).encode("utf-16-le")
    options = {"encoding": "UTF-16LE", "lineSep": "\n"}
    cases["json UTF-16LE with a byte order mark"] = Case("json", {"1": bom}, options=options, rows=expected)
    whole = "\ufeff[" + ONE["json"] + "]"
    cases["json whole file with a byte order mark"] = Case("json", {"1": whole.encode()}, options={"multiline": True})
    latin = f'<?xml version="1.0" encoding="ISO-8859-1"?>{ONE["xml"]}'.encode("latin-1")
    cases["xml declared"] = Case("xml", {"1": latin}, options=OPTIONS["xml"])
    options = {**OPTIONS["xml"], "encoding": "ISO-8859-1"}  # which plain PySpark ignores
    cases["xml ISO-8859-1"] = Case("xml", {"1": ONE["xml"].encode("latin-1")}, options=options, rows=expected)
    for name, text in MALFORMED.items():
        options = OPTIONS.get(name, {})
        cases[f"{name} malformed"] = Case(name, {"1": text.encode()}, options=options)
        folders = {"k=abc/1": ONE[name].encode(), "k=07/1": ONE[name].encode()}
        raw = {"csv": "Jürgen,1", "xml": ONE["json"].strip()}.get(name, ONE[name].strip())
        seven = [{"id": "Jürgen", "n": 1, "k": 7}]  # plain PySpark stops
        cases[f"{name} misfit"] = Case(name, folders, f"{PAIR}, k INT", options, rows=seven, quarantined={raw})
    b = [{"id": "b", "n": 2}]
    bad = b'{"id":"J\xfcrgen","n":1}\n{"id":"b","n":2}\n'
    cases["json invalid"] = Case("json", {"1": bad}, rows=b, quarantined={'{"id":"J\ufffdrgen","n":1}'})
    bad = '{"id":"b","n":2}\n'.encode("utf-16-le") + b'{\0"\0\x00\xd8"\0\n\0'
    options = {"encoding": "UTF-16LE", "lineSep": "\n"}
    wide = Case("json", {"1": bad}, options=options, rows=b, quarantined={'{\0"\0\0\ufffd"\0'})
    cases["json invalid UTF-16LE"] = wide
    cases["csv invalid"] = Case("csv", {"1": b"J\xfcrgen,1\nb,2\n"}, rows=b, quarantined={"J\ufffdrgen,1"})
    long = f"<rows><!--{'x' * 70_000}--><row><id>a</id><n>x</n></row></rows>"
    cases["xml long"] = Case("xml", {"1": long.encode()}, options=OPTIONS["xml"], rows=[], quarantined={long[:65_536]})
    options = {"columnNameOfCorruptRecord": "mine"}
    text = '{"id":"a","n":"x"}'
    cases["json marked"] = Case("json", {"1": text.encode()}, options=options, rows=[], quarantined={text})
    cases["text invalid"] = Case("text", {"1": b"J\xfcrgen\n"}, None, rows=[{"value": "J\ufffdrgen"}])
    cases["binaryFile partitioned"] = Case("binaryFile", {"k=05/1": b"\0\xff"}, BINARY)
    for name in WRITTEN:
        cases[f"{name} plain"] = Case(name, {})
        cases[f"{name} partitioned"] = Case(name, {}, f"{PAIR}, hour STRING, country STRING")
    return cases


CASES = all_cases()


def table_name(name: str) -> str:
    return name.lower().replace(" ", "_").replace("-", "_")


@pytest.fixture(scope="module")
def flow_of_cases(spark, tmp_path_factory):
    """One pipeline with a step for each case, run once."""
    flow = Flow(spark, tmp_path_factory.mktemp("formats"))
    steps = {}
    for name, case in CASES.items():
        table = table_name(name)
        directory = flow.source(table, case.format, **case.options)
        if case.format in WRITTEN:
            folders = "/hour=05/Country=DE" if "hour" in (case.schema or "") else ""
            spark.createDataFrame(ROWS, PAIR).write.mode("overwrite").format(case.format).save(f"{directory}{folders}")
        for file, data in case.files.items():
            (directory / file).parent.mkdir(parents=True, exist_ok=True)
            (directory / file).write_bytes(data)
        read = {"source": table, **({"schema": case.schema} if case.schema else {})}
        steps[table] = {"layer": "bronze", "reads": {"rows": read}, "writes": {"table": table}}
    flow.steps("\n".join(f"{name}: {json.dumps(step)}" for name, step in steps.items()))
    flow.run()
    return flow


def comparable(rows):
    """Return the rows as text that does not depend on the order of rows and columns or on the form of times."""
    return sorted(str(sorted((key, str(value).removesuffix("+00:00")) for key, value in row.items())) for row in rows)


@pytest.mark.parametrize("name", CASES)
def test_step_reads_the_same_rows_as_plain_pyspark(flow_of_cases, spark, name):
    case, table = CASES[name], table_name(name)
    directory = str(flow_of_cases.directory / "data" / table)
    rows, malformed = case.rows, case.quarantined or set()
    if rows is None:
        reader = spark.read.format(case.format).options(**case.options)
        if name.endswith("malformed"):
            reader = reader.schema(f"{case.schema}, {CORRUPT} STRING")
        elif case.schema:
            reader = reader.schema(case.schema)
        stock = [row.asDict() for row in reader.load(directory).collect()]
        malformed = {row[CORRUPT] for row in stock if row.get(CORRUPT)}
        good = [row for row in stock if not row.get(CORRUPT)]
        rows = [{key: value for key, value in row.items() if key != CORRUPT} for row in good]
    # Read without Spark, which would also open a table with invalid UTF-8.
    assert comparable(flow_of_cases.read(table)) == comparable(rows)
    assert {row["raw"] for row in flow_of_cases.read(f"{table}_quarantine")} == malformed
