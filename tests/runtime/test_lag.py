"""Files, offsets and commits that are there and not yet read."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.runtime import lag
from headrace.runtime.lag import directory_fingerprint, source_lags, total_lag


def write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def file_source(place: Path) -> dict[str, object]:
    return {"description": f"FileStreamSource[file:{place}]", "endOffset": {"logOffset": 0}, "latestOffset": None}


def test_files_that_are_there_less_those_in_the_log(tmp_path: Path) -> None:
    data, checkpoint = tmp_path / "data", tmp_path / "checkpoint"
    for name in (
        "a.json",
        "b.json",
        "country=DE/c.json",
        "_ignored",
        ".d.json.crc",
        "_temporary/e.json",
        "_day=1/f.json",
    ):
        write(data / name)
    write(checkpoint / "sources" / "0" / "0", 'v1\n{"path":"a"}')
    assert total_lag(source_lags([file_source(data)], str(checkpoint))) == {"files": 3}  # a column's name may begin so
    write(checkpoint / "sources" / "0" / "9.compact", 'v1\n{"path":"a"}\n{"path":"b"}')
    assert total_lag(source_lags([file_source(data)], str(checkpoint))) == {"files": 2}
    write(checkpoint / "sources" / "0" / "10", 'v1\n{"path":"c"}\n{"path":"f"}')
    assert total_lag(source_lags([file_source(data)], str(checkpoint))) == {"files": 0}


def test_commits_after_the_one_that_was_read(tmp_path: Path) -> None:
    for version in range(4):
        write(tmp_path / "table" / "_delta_log" / f"{version:020}.json")
        write(tmp_path / "table" / "_delta_log" / f"{version:020}.crc")
    source = {"description": f"DeltaSource[file:{tmp_path / 'table'}]"}
    whole = {**source, "endOffset": {"reservoirVersion": 2, "index": -1}}
    part = {**source, "endOffset": {"reservoirVersion": 2, "index": 7}}
    assert total_lag(source_lags([whole], "")) == {"commits": 2}
    assert total_lag(source_lags([part], "")) == {"commits": 1}
    assert total_lag(source_lags([whole, part], "")) == {"commits": 3}


def test_offsets_of_all_partitions() -> None:
    kafka = {
        "description": "KafkaV2[Subscribe[orders]]",
        "endOffset": {"orders": {"0": 5, "1": 2}},
        "latestOffset": {"orders": {"0": 9, "1": 2, "2": 1}},
    }
    assert total_lag(source_lags([kafka], "")) == {"records": 5}
    assert (
        total_lag(source_lags([{**kafka, "latestOffset": None}], "")) == {}
    )  # of a batch that is repeated after a crash


def test_what_cannot_be_known_is_not_guessed(tmp_path: Path) -> None:
    assert total_lag(source_lags([], "")) == {}
    assert total_lag(source_lags([{"description": "RateStreamV2[rowsPerSecond=1]"}], "")) == {}
    assert total_lag(source_lags([file_source(tmp_path / "nowhere")], str(tmp_path))) == {}
    assert total_lag(source_lags([{"description": "FileStreamSource[s3://bucket/orders]"}], "")) == {}
    write(tmp_path / "day=1" / "a.json")
    write(tmp_path / "checkpoint" / "sources" / "0" / "0", "v1\n")
    assert total_lag(source_lags([file_source(tmp_path / "day=*")], str(tmp_path / "checkpoint"))) == {}


def test_arrivals_change_with_each_file_and_are_unknown_elsewhere(tmp_path: Path) -> None:
    told = [directory_fingerprint(str(tmp_path)), directory_fingerprint(str(tmp_path))]
    for name in ("a.json", "country=DE/b.json", "country=FR/b.json"):
        write(tmp_path / name)
        told.append(directory_fingerprint(str(tmp_path)))
    (tmp_path / "a.json").unlink()
    told.append(directory_fingerprint(str(tmp_path)))
    assert told[0] == told[1]
    assert len({*told}) == 5
    assert directory_fingerprint(f"file:{tmp_path}") == directory_fingerprint(f"file://{tmp_path}") == told[-1]
    for elsewhere in ("s3://bucket/orders", "hdfs:/orders", str(tmp_path / "nowhere"), str(tmp_path / "*")):
        assert directory_fingerprint(elsewhere) is None


def test_arrivals_are_seen_behind_a_link_too(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "a.json")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "linked").symlink_to(tmp_path / "elsewhere")
    before = directory_fingerprint(str(tmp_path / "data"))
    write(tmp_path / "elsewhere" / "b.json")
    assert directory_fingerprint(str(tmp_path / "data")) != before


def test_links_are_followed_as_spark_follows_them(tmp_path: Path) -> None:
    """Spark skips dangling links, and `headrace.LocalFiles` those to a directory above."""
    write(tmp_path / "elsewhere" / "day=1" / "a.json")
    write(tmp_path / "data" / "b.json")
    links = {"day=2": "../elsewhere/day=1", "c.json": "b.json", "dangling": "nowhere", "up": "..", "self": "self"}
    for name, target in links.items():
        (tmp_path / "data" / name).symlink_to(target)
    write(tmp_path / "checkpoint" / "sources" / "0" / "0", "v1")
    assert total_lag(source_lags([file_source(tmp_path / "data")], str(tmp_path / "checkpoint"))) == {"files": 3}
    assert directory_fingerprint(str(tmp_path / "data")) is not None


def test_a_list_of_very_many_files_is_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag, "MAX_LOG_BYTES", 20)
    write(tmp_path / "sources" / "0" / "9.compact", "v1\n" + "x" * 17)
    assert not lag.has_long_file_log(str(tmp_path))
    write(tmp_path / "sources" / "1" / "19.compact", "v1\n" + "x" * 18)
    assert lag.has_long_file_log(str(tmp_path))
