"""The lock on a step's checkpoints."""

from __future__ import annotations

import pytest

from headrace.checkpoints.lock import Lock, is_local
from headrace.errors import GuardError
from processes import lock_in_other_process


def test_unusable_lock_file_is_an_error(spark, tmp_path):
    (tmp_path / "lock").mkdir()
    with pytest.raises(GuardError, match=r"step 's' cannot be locked: .*lock \(Is a directory\)"):
        Lock(spark, str(tmp_path), "s")


def test_lock_in_other_processes_are_locked_out_until_release(spark, tmp_path):
    lock = Lock(spark, str(tmp_path), "s")
    with lock_in_other_process(tmp_path) as (_, output):
        assert output == "locked out"
    lock.release()
    lock.release()
    with lock_in_other_process(tmp_path) as (_, output):
        assert output == "locked"


def test_error_for_a_locked_step_names_the_owner(spark, tmp_path, golden):
    with lock_in_other_process(tmp_path) as (process, output):
        assert output == "locked"
        with pytest.raises(GuardError) as error:
            Lock(spark, str(tmp_path), "s")
        text = str(error.value).replace(str(process.pid), "4711").replace(str(tmp_path), "CHECKPOINTS")
        golden("checkpoints/locked", text)
    Lock(spark, str(tmp_path), "s").release()  # the lock ended with its process


@pytest.mark.parametrize("replacement", [None, "process 1"])
def test_lock_whose_file_was_removed_or_replaced_is_lost(spark, tmp_path, replacement):
    lock = Lock(spark, str(tmp_path), "a")
    assert not lock.is_lost
    (tmp_path / "lock").rename(tmp_path / "moved")
    if replacement:
        (tmp_path / "lock").write_text(replacement)
    assert lock.is_lost
    lock.release()


def test_second_run_in_one_process_is_an_error_and_keeps_the_lock(spark, tmp_path):
    lock = Lock(spark, str(tmp_path), "s")
    own = spark._jvm.java.lang.ProcessHandle.current().pid()
    with pytest.raises(GuardError, match=f"already being run by process {own}"):
        Lock(spark, str(tmp_path), "s")
    with lock_in_other_process(tmp_path) as (_, output):
        assert output == "locked out"  # closing any handle of a file releases the locks of the whole process on it
    lock.release()
    Lock(spark, str(tmp_path), "s").release()


@pytest.mark.parametrize(
    ("directory", "local"),
    [
        ("/data/checkpoints", True),
        ("checkpoints", True),
        ("C/odd:name", True),
        ("s3://bucket/checkpoints", False),
        ("dbfs:/checkpoints", False),
        ("file:/data/checkpoints", True),
        ("/Volumes/disk/shop/checkpoints", True),  # on macOS
    ],
)
def test_only_local_directories_are_locked(directory, local):
    assert is_local(directory) is local


def test_databricks_volumes_are_not_locked(monkeypatch):
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "17.3")
    assert not is_local("/Volumes/main/shop/checkpoints")


def test_remote_directories_are_not_touched(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, second = (Lock(spark, directory, "s") for directory in ("s3://bucket/s", "dbfs:/s"))
    first.release()
    second.release()
    assert not list(tmp_path.iterdir())
