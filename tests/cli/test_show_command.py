"""`headrace show` for people: the rows, the size, what is still to come."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headrace.cli.show_command import text
from headrace.observe.table_info import TableInfo


@pytest.mark.parametrize(("name", "open_windows"), [("show_rows", 0), ("show_open_windows", 2)])
def test_a_table_as_a_person_reads_it(name: str, open_windows: int, golden: Callable[[str, str], None]) -> None:
    rows = (("DE", 12, None), ("[b]as it is[/i] :cat:", 0, 1.5))
    seen = TableInfo("gold_revenue", ("country", "orders", "revenue"), rows, 40, 3, 1_650_000, 7, open_windows)
    golden(f"cli/{name}", "\n".join(line.rstrip() for line in text(seen).splitlines()))
