"""The local file system: symbolic links, file names with glob characters, and the order of files."""

from __future__ import annotations

import json
import os
import random
from itertools import count
from pathlib import Path

import pytest

from headrace.spark import java_compiler

STOCK = "org.apache.hadoop.fs.LocalFileSystem"
QUERY = count()


def write(path: Path, *ids: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"id": id_}) + "\n" for id_ in ids or [path.name]))


def read_with_python(*files: Path) -> list[str]:
    return sorted(json.loads(line)["id"] for file in files for line in file.read_text().splitlines())


def read_stream(spark, path: Path | str, checkpoint: Path, **options) -> list[str]:
    """Return the ids that Spark's file source reads from the path."""
    name = f"local_files_{next(QUERY)}"
    rows = spark.readStream.schema("id STRING").options(**options).json(str(path)).select("id")
    writer = rows.writeStream.format("memory").queryName(name).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    return sorted(row.id for row in spark.table(name).collect())


def batches(checkpoint: Path) -> list[list[str]]:
    """Return the paths of each batch's files, sorted within the batch, from the log of the file source."""
    entries = {}
    for file in checkpoint.glob("sources/0/*"):
        if file.name[0].isdigit():
            for entry in map(json.loads, file.read_text().splitlines()[1:]):
                entries[entry["path"]] = entry["batchId"]
    numbers = sorted(set(entries.values()))
    return [sorted(path for path, batch in entries.items() if batch == number) for number in numbers]


def hadoop(spark, kind: str):
    """Return Hadoop's Path class and a file system of this class."""
    jvm = spark._jvm
    system = getattr(jvm, kind)()
    system.initialize(jvm.java.net.URI("file:///"), spark._jsc.hadoopConfiguration())
    return jvm.org.apache.hadoop.fs.Path, system


# ── Links ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A directory with links to files and directories outside of it."""
    write(tmp_path / "elsewhere" / "a.json")
    write(tmp_path / "elsewhere" / "inner" / "b.json")
    root = tmp_path / "root"
    root.mkdir()
    (root / "directory").symlink_to("../elsewhere")
    (root / "files").mkdir()
    (root / "files" / "c.json").symlink_to("../../elsewhere/inner/b.json")
    (root / "partitions").mkdir()
    (root / "partitions" / "day=1").symlink_to("../../elsewhere/inner")
    return root


@pytest.mark.parametrize(
    ("path", "ids"),
    [
        ("directory", ["a.json"]),
        ("directory/inner", ["b.json"]),
        ("directory/*.json", ["a.json"]),
        ("dir*/*", ["a.json", "b.json"]),
        ("*/inner", ["b.json"]),
        ("files", ["b.json"]),
        ("partitions", ["b.json"]),
    ],
)
def test_source_is_read_through_links(spark, linked, path, ids):
    assert read_stream(spark, linked / path, linked / "checkpoint") == ids


def test_dangling_links_are_skipped(spark, linked):
    (linked / "files" / "dangling.json").symlink_to("nowhere")
    (linked / "files" / "itself.json").symlink_to("itself.json")
    assert read_stream(spark, linked / "files", linked / "checkpoint") == ["b.json"]
    path, system = hadoop(spark, java_compiler.LOCAL_FILES)
    for name in ("dangling.json", "itself.json", "c.json/below"):
        assert not system.exists(path(str(linked / "files" / name)))
        with pytest.raises(Exception, match="FileNotFoundException"):
            system.getFileStatus(path(str(linked / "files" / name)))


@pytest.mark.parametrize("target", [".", ".."])
def test_link_to_a_parent_directory_is_not_followed(spark, tmp_path, target):
    write(tmp_path / "root" / "files" / "a.json")  # one link only: with two, the listing would not end
    (tmp_path / "root" / "files" / "up").symlink_to(target)
    files = tmp_path / "root" / "files"
    assert read_stream(spark, files, tmp_path / "checkpoint", recursiveFileLookup=True) == ["a.json"]


@pytest.mark.full
def test_tables_and_checkpoints_can_be_behind_links(flow):
    for name in ("tables", "checkpoints", "data"):
        (flow.directory / "elsewhere" / name).mkdir(parents=True)
        (flow.directory / name).symlink_to(flow.directory / "elsewhere" / name)
    flow.source("rows")
    flow.steps("""
        land: {layer: bronze, reads: {rows: {source: rows, schema: "id STRING"}}, writes: {table: landed}}
        copy: {layer: silver, reads: {rows: {table: landed}}, writes: {table: copied}}
        """)
    for id_ in "ab":
        flow.feed("rows", {"id": id_})
        flow.run()
    assert sorted(row["id"] for row in flow.read("copied")) == ["a", "b"]
    assert (flow.directory / "elsewhere" / "tables" / "copied" / "_delta_log").is_dir()


def test_state_can_be_behind_a_link(spark, linked, tmp_path):
    """RocksDB's snapshots also need a LocalFileSystem."""
    (tmp_path / "state").mkdir()
    (linked / "state").symlink_to(tmp_path / "state")
    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
    try:
        for name in ("d.json", "e.json"):
            write(tmp_path / "elsewhere" / name, "a", "b")
            rows = spark.readStream.schema("id STRING").json(str(linked / "directory")).groupBy("id").count()
            writer = rows.writeStream.format("memory").queryName("counted").outputMode("complete")
            writer = writer.option("checkpointLocation", str(linked / "state")).trigger(availableNow=True)
            writer.start().awaitTermination()
    finally:
        spark.conf.unset("spark.sql.streaming.stateStore.providerClass")
    assert sorted(map(tuple, spark.table("counted").collect())) == [("a", 2), ("a.json", 1), ("b", 2)]
    assert list((tmp_path / "state").glob("state/0/*/*.zip"))


# ── Names with glob characters ────────────────────────────────────────────────────────────────────────

GLOB_NAMES = ("report[1]", "a?b", "a*b", "{c}", "c\\d", "[!x]")
MATCHING_NAMES = ("report1", "axb", "c", "d")


@pytest.mark.parametrize("path", ["", "*.json"])
def test_file_with_glob_characters_in_its_name_is_read_once(spark, tmp_path, path):
    files = [tmp_path / "my data" / f"{name}.json" for name in (*GLOB_NAMES, *MATCHING_NAMES)]
    for file in files:
        write(file, f"{file.name} 1", f"{file.name} 2")
    assert read_stream(spark, tmp_path / "my data" / path, tmp_path / "checkpoint") == read_with_python(*files)


def test_glob_characters_when_spark_lists_files_in_parallel(spark, tmp_path):
    files = [tmp_path / "data" / f"{name}{number}.json" for number in range(20) for name in ("a[1]", "a")]
    for file in files:
        write(file)
    assert read_stream(spark, tmp_path / "data", tmp_path / "checkpoint") == read_with_python(*files)


def test_glob_characters_in_partitions(spark, tmp_path):
    files = [tmp_path / "data" / f"day={day}" / name for day in (1, 2) for name in ("a[1].json", "a1.json")]
    for file in files:
        write(file, str(file.relative_to(tmp_path)))
    assert read_stream(spark, tmp_path / "data", tmp_path / "checkpoint") == read_with_python(*files)


def test_directory_with_the_literal_name_takes_precedence_over_matches(spark, tmp_path):
    for directory in ("in[1]", "in1", "in2"):
        for file in ("a[1].json", "a1.json"):
            write(tmp_path / directory / file, f"{directory}/{file}")
    exact = ["in[1]/a1.json", "in[1]/a[1].json"]
    assert read_stream(spark, tmp_path / "in[1]", tmp_path / "1") == exact
    assert read_stream(spark, tmp_path / "in[1]" / "*.json", tmp_path / "2") == exact
    assert read_stream(spark, tmp_path / "in[12]" / "a1.json", tmp_path / "3") == ["in1/a1.json", "in2/a1.json"]
    assert [row.id for row in spark.read.json(str(tmp_path / "in[1]" / "a[1].json")).collect()] == exact[1:]


# ── Order ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("pattern", "path"),
    [("{:02}.json", ""), ("day={:02}/a.json", ""), ("{:02}/a.json", "*"), ("{:02}.json", "*.json")],
    ids=["files", "more partitions than Spark lists in one thread", "directories of a pattern", "files of a pattern"],
)
def test_files_of_equal_modification_time_are_read_in_order_of_their_names(spark, tmp_path, pattern, path):
    data = tmp_path / "data"
    numbers = list(range(60))
    random.Random(1).shuffle(numbers)
    for number in numbers:
        write(data / pattern.format(number))
        os.utime(data / pattern.format(number), (1e9, 1e9))
    read_stream(spark, data / path, tmp_path / "checkpoint", maxFilesPerTrigger=12)
    names = [f"file://{data}/{pattern.format(number)}" for number in range(60)]
    assert batches(tmp_path / "checkpoint") == [names[first : first + 12] for first in range(0, 60, 12)]


def test_listing_equals_that_of_hadoops_own_class(spark, linked):
    (linked / "files" / "dangling").symlink_to("nowhere")
    (linked / "files" / "a:b").write_text("with a colon")
    (linked / "directory").joinpath("a.json").chmod(0o640)

    def listing(kind: str, path: str) -> list[str]:
        path_class, system = hadoop(spark, kind)
        statuses = sorted(system.listStatus(path_class(str(linked / path))), key=lambda status: str(status.getPath()))
        getters = ("getPath", "getLen", "getModificationTime", "isDirectory", "getPermission", "getOwner", "getGroup")
        return [" ".join(str(getattr(status, name)()) for name in getters) for status in statuses]

    for path in ("", "directory", "files", "files/c.json"):
        assert listing(java_compiler.LOCAL_FILES, path) == listing(STOCK, path)


def test_permissions_are_set(spark, tmp_path):
    path, system = hadoop(spark, java_compiler.LOCAL_FILES)
    (tmp_path / "file").touch()
    permission = spark._jvm.org.apache.hadoop.fs.permission.FsPermission("640")
    system.setPermission(path(str(tmp_path / "file")), permission)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640
    with pytest.raises(Exception, match=r"FileNotFoundException: .*missing"):
        system.setPermission(path(str(tmp_path / "missing")), permission)
