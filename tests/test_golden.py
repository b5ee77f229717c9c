"""Each golden file belongs to a test: one that nobody compares with anything is refused."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent


def test_every_golden_file_is_named_by_a_test() -> None:
    code = "\n".join(file.read_text(encoding="utf-8") for file in TESTS.rglob("*.py"))
    files = [file for file in (TESTS / "golden").rglob("*") if file.is_file()]
    assert files
    unused = [
        str(file.relative_to(TESTS)) for file in files if f'"{file.stem}"' not in code and f"/{file.stem}" not in code
    ]
    assert unused == []
