"""Partition folders that appear after a stream was opened."""

from __future__ import annotations

import json

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

from headrace.config.models import Read
from headrace.expectations import verdict
from headrace.io.sources import open_input
from headrace.spark.columns import quote_name
from inputs import environment, files

PAIR = "id STRING, n INT"
WRITTEN = ("parquet", "orc", "avro")  # by Spark
FORMATS = ("json", "json whole file", "csv", "xml", "text", *WRITTEN)
ONE = {
    "json": '{"id":"Jürgen","n":1}\n',
    "csv": "Jürgen,1\n",
    "text": "Jürgen\n",
    "xml": "<rows><row><id>Jürgen</id><n>1</n></row></rows>",
}


def open_folder(spark, directory, format_, schema, **options):
    source = files(directory, format_, **options)
    return open_input.open_input(spark, Read(source="it", schema_=schema), environment(it=source))


def run_once(frame, checkpoint):
    """Return the rows of one more run of a stream."""
    rows = []
    query = (
        frame.writeStream.foreachBatch(lambda batch, number: rows.extend(batch.collect()))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return rows


def test_folders_that_appear_while_a_stream_is_open_are_columns(spark, tmp_path):
    """Each DataFrame was opened before there were folders, as in a run with --follow."""
    frames = {}
    for name in FORMATS:
        (tmp_path / name).mkdir()
        format_, _, whole = name.partition(" ")
        schema = f"{'line STRING' if format_ == 'text' else PAIR}, country STRING, n2 INT"
        options = {"multiLine": True} if whole else {"rowTag": "row"} if format_ == "xml" else {}
        frame = open_folder(spark, tmp_path / name, format_, schema, **options)
        bad = F.col(verdict.VERDICT).isNotNull() if verdict.has_verdict(frame) else F.lit(False)
        row = F.to_json(F.struct(*[quote_name(column) for column in frame.columns if column != verdict.VERDICT]))
        frames[name] = frame.select(F.lit(name).alias("name"), row.alias("row"), bad.alias("bad"))
    union = frames[FORMATS[0]]
    for name in FORMATS[1:]:
        union = union.union(frames[name])
    for folder, country, number in (("country=a b+c/n2=05", "a b+c", 5), ("country=FR/n2=-6", "FR", -6)):
        for name in FORMATS:
            directory, format_ = tmp_path / name / folder, name.partition(" ")[0]
            if format_ in WRITTEN:
                pair = spark.createDataFrame([("Jürgen", 1)], PAIR)
                pair.coalesce(1).write.format(format_).save(str(directory))
            else:
                directory.mkdir(parents=True)
                (directory / "1").write_text(f"[{ONE['json']}]" if name == "json whole file" else ONE[format_])
        rows = {row["name"]: row for row in run_once(union, tmp_path / "checkpoint")}
        in_folders = {"country": country, "n2": number}
        for name in FORMATS:
            own = {"line": "Jürgen"} if name == "text" else {"id": "Jürgen", "n": 1}
            assert (json.loads(rows[name]["row"]), rows[name]["bad"]) == ({**own, **in_folders}, False), name


@pytest.mark.parametrize(
    ("format_", "schema", "folder"),
    [
        ("json", PAIR, "country=DE"),  # not declared
        ("json", f"{PAIR}, country STRING", "country=a%3Ab"),  # its value is escaped
        ("csv", "id STRING, country STRING, n STRING", "country=DE"),  # Spark would swap country and n
    ],
)
def test_folder_that_an_open_stream_cannot_read_stops_it_until_a_restart(spark, tmp_path, format_, schema, folder):
    (tmp_path / "data").mkdir()
    frame = open_folder(spark, tmp_path / "data", format_, schema)
    (tmp_path / "data" / folder).mkdir()
    (tmp_path / "data" / folder / "1").write_text(ONE[format_])
    with pytest.raises(StreamingQueryException, match="restart the step"):
        run_once(frame, tmp_path / "checkpoint")
    (row,) = run_once(open_folder(spark, tmp_path / "data", format_, schema), tmp_path / "checkpoint")
    assert (row["id"], str(row["n"]), row["country"]) == ("Jürgen", "1", "DE" if folder.endswith("DE") else "a:b")


def test_folder_within_the_path_of_the_source_is_not_a_column(spark, tmp_path):
    directory = tmp_path / "k=1" / "a+b %25"
    directory.mkdir(parents=True)
    frame = open_folder(spark, directory, "json", f"{PAIR}, k STRING")
    for folder, value in ((".", None), ("k=2", "2")):
        (directory / folder).mkdir(exist_ok=True)
        (directory / folder / "1").write_text(ONE["json"])
        assert [row["k"] for row in run_once(frame, tmp_path / "checkpoint")] == [value]
