"""The pages of the documentation are true: their commands run, and print what the pages show."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from doc_pages import Reader, blocks, with_real_output

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if any(block.language == "console" for block in blocks(page)))


@pytest.mark.full
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_page_is_true(page: Path, tmp_path: Path) -> None:
    """Carry out the page. With HEADRACE_GOLDEN=write, write the outputs into the page first."""
    reader = Reader(tmp_path)
    reader.carry_out(page)
    if os.environ.get("HEADRACE_GOLDEN") == "write":
        page.write_text(with_real_output(page, reader), encoding="utf-8")
    else:
        assert not reader.differences, "\n\n".join(reader.differences)
