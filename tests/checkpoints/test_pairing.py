"""Which tables belong to a checkpoint. `test_start_guard` has the same decisions with real tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.checkpoints.generations import AcceptedTable, Generation
from headrace.checkpoints.pairing import StepState, TableState, Writer, check_pair
from headrace.checkpoints.spark_checkpoint import SparkCheckpoint

STEP = Writer("shop", "orders", "gold", 1, "")
OWN = replace(STEP, table="t")
RAN = SparkCheckpoint("q", planned=(0, 1), completed=(0, 1))
NEW = SparkCheckpoint()
TABLE = TableState("gold", "/tables/gold", "t", version=3, is_empty=False)


def messages(checkpoint, table, generation=Generation()):  # noqa: B008 (a frozen value)
    step = StepState(STEP, "orders.yml:1", "/checkpoint", generation, checkpoint, None, {"gold": table})
    return [problem.message for problem in check_pair(step)]


@pytest.mark.parametrize(
    ("checkpoint", "table"),
    [
        (NEW, None),
        (NEW, replace(TABLE, is_empty=True)),
        (RAN, replace(TABLE, transactions={"q": 1})),
        (replace(RAN, completed=(0,)), replace(TABLE, transactions={"q": 1})),  # killed before the commit of batch 1
        (replace(RAN, planned=(0, 1, 2)), replace(TABLE, transactions={"q": 1})),  # killed before the write of batch 2
        (RAN, replace(TABLE, transactions={"other": 7, "q": 1})),
        (RAN, replace(TABLE, transactions={}, writers=(OWN,))),  # no batch had rows
        (RAN, replace(TABLE, transactions=None)),  # on Databricks, written by an older version
        (RAN, replace(TABLE, transactions=None, writers=(OWN,))),
    ],
)
def test_checkpoint_and_table_that_belong_together(checkpoint, table):
    assert messages(checkpoint, table) == []


@pytest.mark.parametrize(
    ("checkpoint", "table", "message"),
    [
        (RAN, None, "table 'gold' is missing, but its checkpoint has completed batch 1"),
        (NEW, TABLE, "table 'gold' has rows that no known step wrote"),
        (NEW, replace(TABLE, writers=(OWN,)), "the checkpoint of step 'gold' of pipeline 'orders' is missing"),
        (RAN, replace(TABLE, transactions={"other": 1}), "table 'gold' has rows that no known step wrote"),
        (RAN, replace(TABLE, transactions={"q": 2}), "is an older copy: it ends with batch 1"),
        (replace(RAN, planned=(), completed=()), replace(TABLE, transactions={"q": 2}), "has lost its offsets"),
        (RAN, replace(TABLE, transactions={"q": 1}, writers=(replace(OWN, table="u"),)), "is a copy of the table"),
        (RAN, replace(TABLE, transactions={"q": 1}, restore_commit_version=2), "was restored to an older version"),
        (NEW, replace(TABLE, transactions=None), "table 'gold' has rows that no known step wrote"),
        (RAN, replace(TABLE, transactions={}, writers=(replace(OWN, generation=2),)), "is missing, but table 'gold'"),
        (
            RAN,
            replace(TABLE, transactions=None, writers=(replace(OWN, bundle="other"),)),
            "has rows that step 'gold' of pipeline 'orders' of bundle 'other' wrote",
        ),
    ],
)
def test_checkpoint_and_table_that_do_not_belong_together(checkpoint, table, message):
    (found,) = messages(checkpoint, table)
    assert message in found


def test_adopted_table_is_accepted_until_another_query_writes_it():
    adopted = Generation(tables={"gold": AcceptedTable("t", "adopted", 3, ["old"])})
    assert messages(NEW, replace(TABLE, transactions={"old": 5}), adopted) == []
    assert messages(RAN, replace(TABLE, transactions={"old": 5, "q": 1}), adopted) == []
    (message,) = messages(NEW, replace(TABLE, transactions={"old": 5, "other": 1}), adopted)
    assert "no known step" in message
    (message,) = messages(NEW, replace(TABLE, id="u", transactions={"old": 5}), adopted)
    assert "no known step" in message


def test_restore_of_an_undone_reset_is_accepted():
    undone = Generation(restored={"gold": 5})
    table = replace(TABLE, transactions={"q": 1}, restore_commit_version=5)
    assert messages(RAN, table, undone) == []
    (message,) = messages(RAN, replace(table, restore_commit_version=6), undone)
    assert "(commit 6)" in message


def test_commands_in_errors_name_the_environment():
    step = StepState(STEP, "", "/c", Generation(), NEW, None, {"gold": TABLE}, environment_option=" --env prod")
    assert step.reset_command.endswith(" --env prod")
    assert [" --env prod" in problem.fix for problem in check_pair(step)] == [True]
