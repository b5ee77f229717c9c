"""The files that are made from the code are up to date."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _check(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "scripts/reference/make.py", "--check"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def test_reference_pages_and_schemas_are_made_from_the_present_code() -> None:
    checked = _check(ROOT)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_changed_page_is_reported(tmp_path: Path) -> None:
    for directory in ("scripts/reference", "docs", "src/headrace/config/schemas", "tests/golden"):
        shutil.copytree(ROOT / directory, tmp_path / directory)
    page = tmp_path / "docs" / "reference" / "events.md"
    page.write_text(page.read_text().replace("The pipeline.", "The line."))
    checked = _check(tmp_path)
    assert checked.returncode == 1
    assert "docs/reference/events.md" in checked.stdout
    assert "commands.md" not in checked.stdout
