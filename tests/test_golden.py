"""Each golden file belongs to a test: one that nobody compares with anything is refused."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
NAMED = re.compile(r'golden\(\s*f?"([^"]+)"')


def _is_used(name: str, code: str) -> bool:
    """Whether some test asks for the file, by its name or by a form whose {parts} are written in the tests."""
    for form in NAMED.findall(code):
        found = re.fullmatch(re.sub(r"\\\{.*?\\\}", "(.+)", re.escape(form)), name)
        if found and all(f'"{part}"' in code for part in found.groups()):
            return True
    return False


def test_every_golden_file_is_used_by_a_test() -> None:
    code = "\n".join(file.read_text(encoding="utf-8") for file in TESTS.rglob("*.py"))
    files = sorted((TESTS / "golden").rglob("*.txt"))
    assert files
    names = [file.relative_to(TESTS / "golden").with_suffix("").as_posix() for file in files]
    assert [name for name in names if not _is_used(name, code)] == []
    assert not _is_used("config/nobody_asks_for_this_" + "one", code)
