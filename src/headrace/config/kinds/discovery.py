"""Find the kinds of sources and sinks: the models in the modules of this package whose names end with the same word."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TypeVar

from headrace.config.value_types import Model

M = TypeVar("M", bound=Model)


def find_kinds(base: type[M], suffix: str) -> tuple[type[M], ...]:
    """Import all modules whose names end with `suffix`, such as `_source`; return the models that derive from `base`.

    A new kind is found by the name of its module, so that it needs no entry in a list. The order is that of the names.
    """
    names = [f"{__package__}.{module.name}" for module in iter_modules([str(Path(__file__).parent)])]
    modules = [import_module(name) for name in sorted(names) if name.endswith(suffix)]
    return tuple(kind for module in modules for kind in base.__subclasses__() if kind.__module__ == module.__name__)
