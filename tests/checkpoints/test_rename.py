"""Renaming the checkpoints of steps and pipelines."""

from __future__ import annotations

import pytest

from headrace.checkpoints.checkpoint_files import DiskFiles
from headrace.checkpoints.rename import rename_checkpoints
from headrace.errors import ConfigurationError, GuardError
from processes import lock_in_other_process


@pytest.fixture
def files(tmp_path):
    files = DiskFiles(str(tmp_path))
    for step in ("orders/bronze", "orders/gold", "other/gold"):
        files.write(f"{step}/1/spark/metadata", step.encode())
        files.write(f"{step}/lock", b"")
    return files


def test_a_step_is_renamed(files):
    files.write("orders/revenue/lock", b"")  # of a start that was refused
    rename_checkpoints(files, "orders/gold", "orders/revenue")
    assert files.sizes("orders").keys() == {"bronze", "revenue"}
    assert files.read("orders/revenue/1/spark/metadata") == b"orders/gold"


def test_a_pipeline_is_renamed(files):
    rename_checkpoints(files, "orders", "sales")
    assert files.read("sales/bronze/1/spark/metadata") == b"orders/bronze"
    assert files.read("sales/gold/1/spark/metadata") == b"orders/gold"
    assert files.sizes("orders") == {}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("orders/silver", "orders/gold2", "orders/silver has no checkpoint"),
        ("sales", "orders2", "sales has no checkpoint"),
        ("orders/gold", "sales", "are not both pipelines or both steps"),
        ("a/b/c", "a/b/d", "are not both pipelines or both steps"),
    ],
)
def test_a_wrong_name_is_an_error(files, old, new, message):
    with pytest.raises(ConfigurationError, match=message) as error:
        rename_checkpoints(files, old, new)
    if old == "orders/silver":
        assert error.value.problems[0].fix == "choose one of: orders/bronze, orders/gold, other/gold"


def test_a_checkpoint_is_not_overwritten(files):
    with pytest.raises(GuardError, match="other/gold already has a checkpoint"):
        rename_checkpoints(files, "orders", "other")
    assert files.sizes("orders").keys() == {"bronze", "gold"}


def test_a_running_step_is_not_renamed(files, tmp_path):
    with (
        lock_in_other_process(tmp_path / "orders" / "gold"),
        pytest.raises(GuardError, match="step 'orders/gold' is already being run by process"),
    ):
        rename_checkpoints(files, "orders/gold", "orders/revenue")
