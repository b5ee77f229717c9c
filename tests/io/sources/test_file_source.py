"""Files of each format against plain PySpark: partitioned, compressed, encoded, malformed; late partition folders."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

from flows import Flow
from headrace.config.models import Environment, FileSource, LocalEngine, Read, Tables
from headrace.expectations import verdict
from headrace.io.sources import file_source, open_input
from headrace.spark.columns import quote_name

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
    wanted: list[dict[str, Any]] | None = None  # instead of plain PySpark's rows
    quarantined: set[str] | None = None


def schema_of(format_: str, columns: str = "") -> str | None:
    own = "line STRING" if format_ == "text" else PAIR
    return f"{own}, {columns}" if columns else None if format_ == "text" else own


def cases() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for name, text in ONE.items():
        options, data = OPTIONS.get(name, {}), text.encode()
        found[f"{name} plain"] = Case(name, {"1": data, "folder/2": data}, schema_of(name), options)
        found[f"{name} gzip"] = Case(name, {"1.gz": gzip.compress(data)}, schema_of(name), options)
        folders = {"Country=DE/hour=05/v=1.10/1": data, "Country=a%2Fb +%C3%BC/hour=06/v=1e3/2": data}
        folders["Country=__HIVE_DEFAULT_PARTITION__/hour=__HIVE_DEFAULT_PARTITION__/v=x=y/3"] = data
        declared = schema_of(name, "hour STRING, country STRING, v STRING")
        found[f"{name} partitioned"] = Case(name, folders, declared, options)
    for name in ("json", "csv"):
        found[f"{name} undeclared"] = Case(name, {"n2=05/value=x/1": ONE[name].encode()})
    for name in ("json", "csv", "text"):
        for encoding in ("ISO-8859-1", "UTF-16LE"):
            options = {"encoding": encoding, "lineSep": "\n"}
            wanted = [{"value": "Jürgen"}] if name == "text" else None  # plain PySpark does not decode text
            files = {"1": ONE[name].encode(encoding)}
            found[f"{name} {encoding}"] = Case(name, files, schema_of(name), options, wanted=wanted)
    utf16 = ONE["json"].encode("utf-16")
    found["json UTF-16"] = Case("json", {"1": utf16}, options={"encoding": "UTF-16", "multiLine": True})
    wanted = [{"id": "Jürgen", "n": 1}]
    bom = ("\ufeff" + ONE["json"]).encode("utf-16-le")
    options = {"encoding": "UTF-16LE", "lineSep": "\n"}
    found["json UTF-16LE with a mark"] = Case("json", {"1": bom}, options=options, wanted=wanted)
    whole = "\ufeff[" + ONE["json"] + "]"
    found["json whole with a mark"] = Case("json", {"1": whole.encode()}, options={"multiline": True})
    latin = f'<?xml version="1.0" encoding="ISO-8859-1"?>{ONE["xml"]}'.encode("latin-1")
    found["xml declared"] = Case("xml", {"1": latin}, options=OPTIONS["xml"])
    options = {**OPTIONS["xml"], "encoding": "ISO-8859-1"}  # which plain PySpark ignores
    found["xml ISO-8859-1"] = Case("xml", {"1": ONE["xml"].encode("latin-1")}, options=options, wanted=wanted)
    for name, text in MALFORMED.items():
        options = OPTIONS.get(name, {})
        found[f"{name} malformed"] = Case(name, {"1": text.encode()}, options=options)
        folders = {"k=abc/1": ONE[name].encode(), "k=07/1": ONE[name].encode()}
        raw = {"csv": "Jürgen,1", "xml": ONE["json"].strip()}.get(name, ONE[name].strip())
        seven = [{"id": "Jürgen", "n": 1, "k": 7}]  # plain PySpark stops
        found[f"{name} misfit"] = Case(name, folders, f"{PAIR}, k INT", options, wanted=seven, quarantined={raw})
    b = [{"id": "b", "n": 2}]
    bad = b'{"id":"J\xfcrgen","n":1}\n{"id":"b","n":2}\n'
    found["json invalid"] = Case("json", {"1": bad}, wanted=b, quarantined={'{"id":"J\ufffdrgen","n":1}'})
    bad = '{"id":"b","n":2}\n'.encode("utf-16-le") + b'{\0"\0\x00\xd8"\0\n\0'
    options = {"encoding": "UTF-16LE", "lineSep": "\n"}
    wide = Case("json", {"1": bad}, options=options, wanted=b, quarantined={'{\0"\0\0\ufffd"\0'})
    found["json invalid UTF-16LE"] = wide
    found["csv invalid"] = Case("csv", {"1": b"J\xfcrgen,1\nb,2\n"}, wanted=b, quarantined={"J\ufffdrgen,1"})
    long = f"<rows><!--{'x' * 70_000}--><row><id>a</id><n>x</n></row></rows>"
    found["xml long"] = Case(
        "xml", {"1": long.encode()}, options=OPTIONS["xml"], wanted=[], quarantined={long[:65_536]}
    )
    options = {"columnNameOfCorruptRecord": "mine"}
    text = '{"id":"a","n":"x"}'
    found["json marked"] = Case("json", {"1": text.encode()}, options=options, wanted=[], quarantined={text})
    found["text invalid"] = Case("text", {"1": b"J\xfcrgen\n"}, None, wanted=[{"value": "J\ufffdrgen"}])
    found["binaryFile partitioned"] = Case("binaryFile", {"k=05/1": b"\0\xff"}, BINARY)
    for name in WRITTEN:
        found[f"{name} plain"] = Case(name, {})
        found[f"{name} partitioned"] = Case(name, {}, f"{PAIR}, hour STRING, country STRING")
    return found


CASES = cases()


def table_of(name: str) -> str:
    return name.lower().replace(" ", "_").replace("-", "_")


@pytest.fixture(scope="module")
def ran(spark, tmp_path_factory):
    """One pipeline with a step for each case, run once."""
    flow = Flow(spark, tmp_path_factory.mktemp("formats"))
    steps = {}
    for name, case in CASES.items():
        table = table_of(name)
        place = flow.source(table, case.format, **case.options)
        if case.format in WRITTEN:
            folders = "/hour=05/Country=DE" if "hour" in (case.schema or "") else ""
            spark.createDataFrame(ROWS, PAIR).write.mode("overwrite").format(case.format).save(f"{place}{folders}")
        for file, data in case.files.items():
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            (place / file).write_bytes(data)
        read = {"source": table, **({"schema": case.schema} if case.schema else {})}
        steps[table] = {"layer": "bronze", "reads": {"rows": read}, "writes": {"table": table}}
    flow.steps("\n".join(f"{name}: {json.dumps(step)}" for name, step in steps.items()))
    flow.run()
    return flow


def as_text(rows):
    """Rows that can be compared, whatever the order of rows and columns and the form of times."""
    return sorted(str(sorted((key, str(value).removesuffix("+00:00")) for key, value in row.items())) for row in rows)


@pytest.mark.parametrize("name", CASES)
def test_a_step_reads_what_plain_pyspark_reads(ran, spark, name):
    case, table = CASES[name], table_of(name)
    place = str(ran.directory / "data" / table)
    rows, refused = case.wanted, case.quarantined or set()
    if rows is None:
        reader = spark.read.format(case.format).options(**case.options)
        if name.endswith("malformed"):
            reader = reader.schema(f"{case.schema}, {CORRUPT} STRING")
        elif case.schema:
            reader = reader.schema(case.schema)
        found = [row.asDict() for row in reader.load(place).collect()]
        refused = {row[CORRUPT] for row in found if row.get(CORRUPT)}
        good = [row for row in found if not row.get(CORRUPT)]
        rows = [{key: value for key, value in row.items() if key != CORRUPT} for row in good]
    assert as_text(ran.read(table)) == as_text(rows)  # read without Spark, which can open tables of invalid UTF-8
    assert {row["raw"] for row in ran.read(f"{table}_quarantine")} == refused


def opened(spark, place, format_, schema, **options):
    source = FileSource(kind="files", format=format_, path=str(place), options=options)
    environment = Environment(
        name="local",
        engine=LocalEngine(kind="local"),
        tables=Tables(root="none"),
        checkpoints="none",
        sources={"it": source},
    )
    return open_input.open_input(spark, Read(source="it", schema_=schema), environment)


def taken(frame, checkpoint):
    """The rows of one more run of a stream."""
    rows = []
    query = (
        frame.writeStream.foreachBatch(lambda batch, number: rows.extend(batch.collect()))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return rows


LATE = ("json", "json whole", "csv", "xml", "text", *WRITTEN)


def test_partition_folders_that_appear_while_a_stream_is_open(spark, tmp_path):
    """Each DataFrame was opened before there were folders, as in a run that follows its sources."""
    frames = {}
    for name in LATE:
        (tmp_path / name).mkdir()
        format_, _, whole = name.partition(" ")
        schema = schema_of(format_, "country STRING, n2 INT")
        options = {"multiLine": True} if whole else OPTIONS.get(format_, {})
        frame = opened(spark, tmp_path / name, format_, schema, **options)
        bad = F.col(verdict.VERDICT).isNotNull() if verdict.has_verdict(frame) else F.lit(False)
        row = F.to_json(F.struct(*[quote_name(column) for column in frame.columns if column != verdict.VERDICT]))
        frames[name] = frame.select(F.lit(name).alias("name"), row.alias("row"), bad.alias("bad"))
    together = frames[LATE[0]]
    for name in LATE[1:]:
        together = together.union(frames[name])
    for folder, country, number in (("country=a b+c/n2=05", "a b+c", 5), ("country=FR/n2=-6", "FR", -6)):
        for name in LATE:
            place, format_ = tmp_path / name / folder, name.partition(" ")[0]
            if format_ in WRITTEN:
                spark.createDataFrame([("Jürgen", 1)], PAIR).coalesce(1).write.format(format_).save(str(place))
            else:
                place.mkdir(parents=True)
                (place / "1").write_text(f"[{ONE['json']}]" if name == "json whole" else ONE[format_])
        rows = {row["name"]: row for row in taken(together, tmp_path / "checkpoint")}
        wanted = {"country": country, "n2": number}
        for name in LATE:
            own = {"line": "Jürgen"} if name == "text" else {"id": "Jürgen", "n": 1}
            assert (json.loads(rows[name]["row"]), rows[name]["bad"]) == ({**own, **wanted}, False), name


@pytest.mark.parametrize(
    ("format_", "schema", "folder"),
    [
        ("json", PAIR, "country=DE"),  # not declared
        ("json", f"{PAIR}, country STRING", "country=a%3Ab"),  # its value is escaped
        ("csv", "id STRING, country STRING, n STRING", "country=DE"),  # Spark would swap country and n
    ],
)
def test_a_folder_that_appears_later_stops_a_stream_that_cannot_read_it(spark, tmp_path, format_, schema, folder):
    (tmp_path / "data").mkdir()
    frame = opened(spark, tmp_path / "data", format_, schema)
    (tmp_path / "data" / folder).mkdir()
    (tmp_path / "data" / folder / "1").write_text(ONE[format_])
    with pytest.raises(StreamingQueryException, match="restart the step"):
        taken(frame, tmp_path / "checkpoint")
    (row,) = taken(opened(spark, tmp_path / "data", format_, schema), tmp_path / "checkpoint")
    assert (row["id"], str(row["n"]), row["country"]) == ("Jürgen", "1", "DE" if folder.endswith("DE") else "a:b")


def test_a_folder_inside_the_sources_path_is_no_column(spark, tmp_path):
    place = tmp_path / "k=1" / "a+b %25"
    place.mkdir(parents=True)
    frame = opened(spark, place, "json", f"{PAIR}, k STRING")
    for folder, value in ((".", None), ("k=2", "2")):
        (place / folder).mkdir(exist_ok=True)
        (place / folder / "1").write_text(ONE["json"])
        assert [row["k"] for row in taken(frame, tmp_path / "checkpoint")] == [value]


def test_an_encoding_of_the_users_own_choice(flow):
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


def test_an_inferred_schema_has_no_column_of_malformed_records(spark, tmp_path):
    (tmp_path / "1").write_bytes(ONE["json"].encode("latin-1") + b"{\n")
    source = FileSource(kind="files", format="json", path=str(tmp_path), options={"encoding": "ISO-8859-1"})
    assert file_source.inferred_schema(spark, source).names == ["id", "n"]
