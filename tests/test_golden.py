"""Each golden file is used by a test."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
NAMED = re.compile(r'golden\(\s*f?"([^"]+)"')


def _is_used(name: str, code: str) -> bool:
    """Return whether a test uses the file, by name or by an f-string whose {parts} occur as strings in the tests."""
    for pattern in NAMED.findall(code):
        match = re.fullmatch(re.sub(r"\\\{.*?\\\}", "(.+)", re.escape(pattern)), name)
        if match and all(f'"{part}"' in code for part in match.groups()):
            return True
    return False


def test_every_golden_file_is_used_by_a_test() -> None:
    code = "\n".join(file.read_text(encoding="utf-8") for file in TESTS.rglob("*.py"))
    files = sorted((TESTS / "golden").rglob("*.txt"))
    assert files
    names = [file.relative_to(TESTS / "golden").with_suffix("").as_posix() for file in files]
    assert [name for name in names if not _is_used(name, code)] == []
    assert not _is_used("config/unused_" + "file", code)
