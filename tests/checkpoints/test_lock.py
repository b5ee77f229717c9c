"""One driver at a time on a checkpoint."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager

import pytest

from headrace.checkpoints.lock import Lock, is_local
from headrace.errors import GuardError

HOLD = """
import fcntl, os, sys
file = open(sys.argv[1], "r+" if os.path.exists(sys.argv[1]) else "w+")
try:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    print("refused", flush=True)
    sys.exit()
file.truncate(0)
print(f"process {os.getpid()}", file=file, flush=True)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def other_process(directory):
    """Another process that wants the lock: what it says, then it holds what it got."""
    command = [sys.executable, "-c", HOLD, str(directory / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process, process.stdout.readline().strip()
        process.stdin.close()


def test_a_lock_file_that_cannot_be_opened_is_told(spark, tmp_path):
    (tmp_path / "lock").mkdir()
    with pytest.raises(GuardError, match=r"step 's' cannot be locked: .*lock \(Is a directory\)"):
        Lock(spark, str(tmp_path), "s")


def test_the_lock_is_held_against_other_processes_until_it_is_released(spark, tmp_path):
    lock = Lock(spark, str(tmp_path), "s")
    with other_process(tmp_path) as (_, said):
        assert said == "refused"
    lock.release()
    lock.release()
    with other_process(tmp_path) as (_, said):
        assert said == "held"


def test_a_lock_of_another_process_is_told_with_its_owner(spark, tmp_path, golden):
    with other_process(tmp_path) as (process, said):
        assert said == "held"
        with pytest.raises(GuardError) as error:
            Lock(spark, str(tmp_path), "s")
        text = str(error.value).replace(str(process.pid), "4711").replace(str(tmp_path), "CHECKPOINTS")
        golden("checkpoints/locked", text)
    Lock(spark, str(tmp_path), "s").release()  # it ended, and its lock with it


def test_a_second_run_in_the_same_process_is_refused_and_takes_nothing_away(spark, tmp_path):
    lock = Lock(spark, str(tmp_path), "s")
    own = spark._jvm.java.lang.ProcessHandle.current().pid()
    with pytest.raises(GuardError, match=f"already run by process {own}"):
        Lock(spark, str(tmp_path), "s")
    with other_process(tmp_path) as (_, said):
        assert said == "refused"  # closing any handle of a file gives up the locks of the whole process on it
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
        ("/Volumes/disk/shop/checkpoints", True),  # on a Mac
    ],
)
def test_only_local_directories_can_be_locked(directory, local):
    assert is_local(directory) is local


def test_a_volume_of_databricks_has_no_locks(monkeypatch):
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "17.3")
    assert not is_local("/Volumes/main/shop/checkpoints")


def test_a_remote_directory_is_left_alone(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, second = (Lock(spark, place, "s") for place in ("s3://bucket/s", "dbfs:/s"))
    first.release()
    second.release()
    assert not list(tmp_path.iterdir())
