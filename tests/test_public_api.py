"""What bundles may import: a change of it is a change of the golden file."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import entry_points, metadata
from pathlib import Path

import pytest

PUBLIC_MODULES = (
    "headrace",
    "headrace.entry_points",
    "headrace.errors",
    "headrace.testing",
    "headrace.testing.kafka_broker",
    "headrace.testing.plugin",
    "headrace.testing.workspace",
    "headrace.transforms.bronze",
    "headrace.transforms.gold",
    "headrace.transforms.silver",
)


def _lines(module_name: str) -> Iterator[str]:
    """Yield each public name of a module, with its parameters, or its public methods and fields."""
    module = import_module(module_name)
    for name in sorted(module.__all__):
        member = getattr(module, name)
        if inspect.isclass(member) and member.__module__.startswith("headrace"):
            yield f"{module_name}.{name}"
            attributes = [*getattr(member, "__annotations__", ()), *vars(member)]
            yield from sorted({f"{module_name}.{name}.{each}" for each in attributes if not each.startswith("_")})
        elif inspect.isfunction(member):
            yield f"{module_name}.{name}({', '.join(map(str, inspect.signature(member).parameters))})"
        else:
            yield f"{module_name}.{name}"


def test_public_names(golden: Callable[[str, str], None]) -> None:
    lines = [line for module in PUBLIC_MODULES for line in _lines(module)]
    lines += [f"headrace.jobs: {point.name}" for point in sorted(entry_points(group="headrace.jobs"))]
    golden("public_api", "\n".join(lines))


def test_reference_page_has_every_public_module() -> None:
    page = (Path(__file__).parents[1] / "docs" / "reference" / "python.md").read_text()
    assert [name for name in PUBLIC_MODULES if f"## {name}\n" not in page] == ["headrace"]


def test_package_is_described_and_typed() -> None:
    package = metadata("headrace")
    assert package["Summary"] and package["Keywords"]
    classifiers = package.get_all("Classifier") or []
    assert "Typing :: Typed" in classifiers
    assert (Path(import_module("headrace").__file__ or "").parent / "py.typed").is_file()


@pytest.mark.full
def test_type_checker_sees_the_types_of_transforms(tmp_path: Path) -> None:
    code = "from headrace.transforms.gold import aggregate_windows\nreveal_type(aggregate_windows)\n"
    (tmp_path / "mine.py").write_text(code)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), "mine.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "aggregates: Mapping[str, Mapping[str, str]]" in checked.stdout.replace("typing.", ""), checked.stdout
