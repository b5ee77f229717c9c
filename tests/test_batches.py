"""The batch writer: each row once in each table, whatever a crash has left undone."""

from __future__ import annotations

import pytest

from flows import sorted_rows

ROW = "id STRING, n INT, at TIMESTAMP"
TWO_WAYS = f"""
stateful:
  layer: bronze
  reads:
    rows:
      source: rows
      schema: {ROW}
      watermark: {{column: at, delay: 10 minutes}}
      expect: [{{not_null: [id]}}]
  transform: headrace.transforms.bronze:deduplicate
  with: {{keys: [id]}}
  writes: {{table: stateful}}
stateless:
  layer: bronze
  reads: {{rows: {{source: rows, schema: "{ROW}", expect: [{{not_null: [id]}}]}}}}
  writes: {{table: stateless}}
"""


def row(name, minute=0, n=1):
    return {"id": name, "n": n, "at": f"2026-01-01T12:{minute:02}:00Z"}


BAD = ["not json", row(None)]
UNDONE = [[], ["stateful_quarantine"], ["stateful", "stateful_quarantine"]]


@pytest.mark.parametrize("undone", [(), ("_quarantine",), ("_quarantine", "")], ids=["all", "no quarantine", "nothing"])
@pytest.mark.parametrize("bad", [BAD, []], ids=["bad rows", "clean"])
def test_a_batch_repeated_after_a_crash_is_in_each_table_once(flow, bad, undone):
    if undone and not bad:
        pytest.skip("without bad rows nothing was written there")
    flow.steps(TWO_WAYS)
    flow.source("rows", maxFilesPerTrigger=1)
    flow.feed("rows", row("a", 5), row("b", 5), *BAD)
    flow.feed("rows", row("c", 4), row("c", 4), row("a", 4), row("d", 3), *bad)
    names = ("stateful", "stateless", "stateful_quarantine", "stateless_quarantine")
    first = flow.run()
    once = {name: sorted_rows(first.table(name).drop("quarantined_at").collect()) for name in names}
    assert [len(once[name]) for name in names] == [4, 6, 2 + len(bad), 2 + len(bad)]

    for step in ("stateful", "stateless"):
        flow.crash_before_commit(step, undo=[step + suffix for suffix in undone])
    again = flow.run()
    assert {name: sorted_rows(again.table(name).drop("quarantined_at").collect()) for name in names} == once
    assert [again.total(step, "rows") for step in ("stateful", "stateless")] == [4 + len(bad)] * 2
    assert again.total("stateful", "duplicates") == 2
    counted = [e.refused for e in again.events if e.what == "batch"]
    assert counted == [{"malformed": 1, "not_null id": 1} if bad else {}] * 2
