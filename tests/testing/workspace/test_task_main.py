"""Where a task's entry point is looked for: the package's metadata, any group, then the package itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.testing.workspace.task_main import find

CODE = """
def named():
    return "by its metadata"

def unnamed():
    return "by its name"
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
def test_any_group_and_any_spelling(site: str, package: str) -> None:
    assert find(package, "main", site)() == "by its metadata"


def test_a_function_of_the_package(site: str) -> None:
    assert find("some-package", "unnamed", site)() == "by its name"
    with pytest.raises(AttributeError, match="neither an entry point nor a function 'other'"):
        find("some-package", "other", site)
