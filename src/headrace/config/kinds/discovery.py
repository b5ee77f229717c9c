"""Find the kinds of sources and sinks: the models in those modules of this package whose names end with a suffix."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TypeVar

from headrace.config.value_types import Model

M = TypeVar("M", bound=Model)


def find_kinds(base: type[M], suffix: str) -> tuple[type[M], ...]:
    """Import the modules whose names end with `suffix`, such as `_source`; return their direct subclasses of `base`.

    To add a kind, add a module with this suffix; there is no list to update. The kinds are sorted by module name.
    """
    names = [f"{__package__}.{module.name}" for module in iter_modules([str(Path(__file__).parent)])]
    modules = [import_module(name) for name in sorted(names) if name.endswith(suffix)]
    return tuple(kind for module in modules for kind in base.__subclasses__() if kind.__module__ == module.__name__)
