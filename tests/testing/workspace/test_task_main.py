"""Lookup of a task's entry point: first in the package's metadata, in any group, then in the package itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.testing.workspace.task_main import load_entry_point

CODE = """
def named():
    return "from the metadata"

def unnamed():
    return "from the package"
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "some_package.py").write_text(CODE)
    metadata = tmp_path / "some_package-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: Some-Package\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[console_scripts]\nmain = some_package:named\n")
    monkeypatch.syspath_prepend(tmp_path)
    return str(tmp_path)


@pytest.mark.parametrize("package", ["some-package", "some_package", "Some.Package"])
def test_entry_point_of_any_group_and_any_spelling_of_the_package(site: str, package: str) -> None:
    assert load_entry_point(package, "main", site)() == "from the metadata"


def test_function_of_the_package(site: str) -> None:
    assert load_entry_point("some-package", "unnamed", site)() == "from the package"
    with pytest.raises(AttributeError, match="neither an entry point nor a function 'other'"):
        load_entry_point("some-package", "other", site)
