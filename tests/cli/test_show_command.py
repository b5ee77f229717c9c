"""Test the text that `headrace show` prints."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headrace.cli.show_command import format_table_info
from headrace.observe.table_info import TableInfo


@pytest.mark.parametrize(("name", "open_windows"), [("show_rows", 0), ("show_open_windows", 2)])
def test_table_is_printed_as_text(name: str, open_windows: int, golden: Callable[[str, str], None]) -> None:
    rows = (("DE", 12, None), ("[b]as it is[/i] :cat:", 0, 1.5))
    info = TableInfo("gold_revenue", ("country", "orders", "revenue"), rows, 40, 3, 1_650_000, 7, open_windows)
    golden(f"cli/{name}", "\n".join(line.rstrip() for line in format_table_info(info).splitlines()))


def test_quarantined_rows_are_printed_as_blocks_of_lines(golden: Callable[[str, str], None]) -> None:
    rows = (
        ('{"id": "a", "amount": 9' + "0" * 100 + "}", ["between amount 0 and 10", "rule known"], "file:/in.json", 3),
        ("[/b", ["malformed"], None, 3),
    )
    info = TableInfo("orders_quarantine", ("raw", "reasons", "position", "batch"), rows, 2, 1, 900, 0, 0)
    golden("cli/show_quarantine", format_table_info(info, as_records=True))
