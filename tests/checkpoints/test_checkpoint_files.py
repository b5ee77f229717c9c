"""Files of checkpoints: on the disk, and through Hadoop as for an object store."""

from __future__ import annotations

import pytest

from headrace.checkpoints.checkpoint_files import DiskFiles, HadoopFiles, open_files


@pytest.fixture(params=["disk", "hadoop"])
def files(request, tmp_path):
    if request.param == "disk":
        return DiskFiles(str(tmp_path))
    return HadoopFiles(f"file:{tmp_path}", request.getfixturevalue("spark"))


def test_files_are_written_read_and_listed(files):
    assert (files.sizes(), files.read("a/b"), files.read("a/b/c")) == ({}, None, None)
    files.write("a/b", b"one")
    files.write("a/b", b"two")
    assert (files.sizes(), files.sizes("a"), files.read("a/b")) == ({"a": 0}, {"b": 3}, b"two")


def test_directories_are_moved_and_deleted(files):
    files.write("old/step/1/file", b"content")
    files.move("old/step", "new/name")
    assert (files.sizes("old"), files.read("new/name/1/file")) == ({}, b"content")
    files.delete("new")
    files.delete("new")
    assert files.sizes() == {"old": 0}


def test_a_failed_write_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    files = DiskFiles(str(tmp_path))
    files.write("file", b"old")
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        files.write("file", b"new")
    assert (files.read("file"), files.sizes()) == (b"old", {"file": 3})


def test_remote_directories_need_a_session():
    assert open_files("file:/tmp/checkpoints").directory == "/tmp/checkpoints"
    with pytest.raises(ValueError, match="s3://bucket/checkpoints can only be read with a session"):
        open_files("s3://bucket/checkpoints")
