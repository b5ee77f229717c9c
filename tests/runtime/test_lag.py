"""Lag: files, records and commits that are available and not yet read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.runtime import lag
from headrace.runtime.lag import directory_fingerprint, source_lags, total_lag


def write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def file_source(directory: Path) -> dict[str, object]:
    return {"description": f"FileStreamSource[file:{directory}]", "endOffset": {"logOffset": 0}, "latestOffset": None}


def lag_of(*sources: dict[str, Any], checkpoint: object = "") -> dict[str, int]:
    return total_lag(source_lags(sources, str(checkpoint)))


def test_lag_of_files_is_those_in_the_directory_less_those_in_the_log(tmp_path: Path) -> None:
    data, checkpoint = tmp_path / "data", tmp_path / "checkpoint"
    for name in (
        "a.json",
        "b.json",
        "country=DE/c.json",
        "_ignored",
        ".d.json.crc",
        "_temporary/e.json",
        "_day=1/f.json",  # the name of a column may begin with _
    ):
        write(data / name)
    write(checkpoint / "sources" / "0" / "0", 'v1\n{"path":"a"}')
    assert lag_of(file_source(data), checkpoint=checkpoint) == {"files": 3}
    write(checkpoint / "sources" / "0" / "9.compact", 'v1\n{"path":"a"}\n{"path":"b"}')
    assert lag_of(file_source(data), checkpoint=checkpoint) == {"files": 2}
    write(checkpoint / "sources" / "0" / "10", 'v1\n{"path":"c"}\n{"path":"f"}')
    assert lag_of(file_source(data), checkpoint=checkpoint) == {"files": 0}


def test_lag_of_a_table_is_the_commits_after_the_one_that_was_read(tmp_path: Path) -> None:
    for version in range(4):
        write(tmp_path / "table" / "_delta_log" / f"{version:020}.json")
        write(tmp_path / "table" / "_delta_log" / f"{version:020}.crc")
    source = {"description": f"DeltaSource[file:{tmp_path / 'table'}]"}
    whole = {**source, "endOffset": {"reservoirVersion": 2, "index": -1}}
    part = {**source, "endOffset": {"reservoirVersion": 2, "index": 7}}
    assert lag_of(whole) == {"commits": 2}
    assert lag_of(part) == {"commits": 1}
    assert lag_of(whole, part) == {"commits": 3}


def test_lag_of_kafka_is_the_records_of_all_partitions() -> None:
    kafka = {
        "description": "KafkaV2[Subscribe[orders]]",
        "endOffset": {"orders": {"0": 5, "1": 2}},
        "latestOffset": {"orders": {"0": 9, "1": 2, "2": 1}},
    }
    assert lag_of(kafka) == {"records": 5}
    assert lag_of({**kafka, "latestOffset": None}) == {}  # of a batch that is repeated after a crash


def test_lags_of_different_units_are_not_added(tmp_path: Path) -> None:
    write(tmp_path / "table" / "_delta_log" / f"{0:020}.json")
    table = {
        "description": f"DeltaSource[file:{tmp_path / 'table'}]",
        "endOffset": {"reservoirVersion": 0, "index": -1},
    }
    kafka = {"description": "KafkaV2[Subscribe[a]]", "endOffset": {"a": {"0": 5}}, "latestOffset": {"a": {"0": 9}}}
    unknown = {"description": "RateStreamV2[rowsPerSecond=1]"}
    assert source_lags([table, kafka, unknown], "") == [(1, "commits"), (4, "records"), None]
    assert lag_of(table, kafka, kafka, unknown) == {"commits": 1, "records": 8}


def test_unknown_lag_is_not_guessed(tmp_path: Path) -> None:
    assert lag_of() == {}
    assert lag_of({"description": "RateStreamV2[rowsPerSecond=1]"}) == {}
    assert lag_of(file_source(tmp_path / "nowhere"), checkpoint=tmp_path) == {}
    assert lag_of({"description": "FileStreamSource[s3://bucket/orders]"}) == {}
    write(tmp_path / "day=1" / "a.json")
    write(tmp_path / "checkpoint" / "sources" / "0" / "0", "v1\n")
    assert lag_of(file_source(tmp_path / "day=*"), checkpoint=tmp_path / "checkpoint") == {}


def test_fingerprint_of_a_directory_changes_with_its_files(tmp_path: Path) -> None:
    fingerprints = [directory_fingerprint(str(tmp_path)), directory_fingerprint(str(tmp_path))]
    for name in ("a.json", "country=DE/b.json", "country=FR/b.json"):
        write(tmp_path / name)
        fingerprints.append(directory_fingerprint(str(tmp_path)))
    (tmp_path / "a.json").unlink()
    fingerprints.append(directory_fingerprint(str(tmp_path)))
    assert fingerprints[0] == fingerprints[1]
    assert len({*fingerprints}) == 5
    urls = [f"file:{tmp_path}", f"file://{tmp_path}"]
    assert [directory_fingerprint(url) for url in urls] == [fingerprints[-1]] * 2
    for unknown in ("s3://bucket/orders", "hdfs:/orders", str(tmp_path / "nowhere"), str(tmp_path / "*")):
        assert directory_fingerprint(unknown) is None


def test_fingerprint_includes_files_behind_a_link(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "a.json")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "linked").symlink_to(tmp_path / "elsewhere")
    before = directory_fingerprint(str(tmp_path / "data"))
    write(tmp_path / "elsewhere" / "b.json")
    assert directory_fingerprint(str(tmp_path / "data")) != before


def test_links_are_followed_as_by_spark(tmp_path: Path) -> None:
    """Spark skips dangling links, and `headrace.LocalFiles` those to a parent directory."""
    write(tmp_path / "elsewhere" / "day=1" / "a.json")
    write(tmp_path / "data" / "b.json")
    links = {"day=2": "../elsewhere/day=1", "c.json": "b.json", "dangling": "nowhere", "up": "..", "self": "self"}
    for name, target in links.items():
        (tmp_path / "data" / name).symlink_to(target)
    write(tmp_path / "checkpoint" / "sources" / "0" / "0", "v1")
    assert lag_of(file_source(tmp_path / "data"), checkpoint=tmp_path / "checkpoint") == {"files": 3}
    assert directory_fingerprint(str(tmp_path / "data")) is not None


def test_log_of_very_many_files_is_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag, "MAX_LOG_BYTES", 20)
    write(tmp_path / "sources" / "0" / "9.compact", "v1\n" + "x" * 17)
    assert not lag.has_long_file_log(str(tmp_path))
    write(tmp_path / "sources" / "1" / "19.compact", "v1\n" + "x" * 18)
    assert lag.has_long_file_log(str(tmp_path))
