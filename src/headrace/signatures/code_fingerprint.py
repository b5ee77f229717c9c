"""Fingerprint Python code: equal for unchanged behaviour, in every process and on every machine.

A fingerprint covers byte code, constants, defaults, closures, and every global, helper function and class that the
code names. Comments, docstrings, type hints, line numbers and the names of local variables have no effect. Code of
libraries counts by name only. Paths inside the user's package, such as `__file__`, count relative to it. Byte code
differs between minor versions of Python, so only fingerprints of the same version can be compared.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import os
import sys
import types
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any

from headrace.signatures.byte_code import CodeNames, modules_imported, names_used
from headrace.signatures.library_code import is_library

SCALARS = (bool, int, float, complex, str, bytes, type(None), type(...))
LONGEST_TEXT = 100  # longer texts are replaced by their hash
# Attributes of classes that do not change what the class does (3.11 to 3.14).
IGNORED_ATTRIBUTES = {
    *("__abstractmethods__", "__annotate__", "__annotate_func__", "__annotations__", "__annotations_cache__"),
    *("__dict__", "__doc__", "__firstlineno__", "__module__", "__orig_bases__", "__parameters__", "__qualname__"),
    *("__slotnames__", "__static_attributes__", "__weakref__", "_abc_impl"),
}
IGNORED_PREFIX = "__pydantic_"  # made from the class; they contain addresses (2.14)
# Library objects whose repr is their whole value. Of others, only the type counts.
VALUE_MODULES = {"datetime", "decimal", "fractions", "uuid", "zoneinfo", "pyspark.sql.types"}


def code_fingerprint(code: Any, *, module: str = "") -> str:
    """Return 10 hexadecimal digits that identify the behaviour of a function, a class or an object.

    `module` is the user's module in which the object was made; by default, the module of the function or class.
    """
    return short_hash(_Fingerprint((module or _module_of(code)).split(".")[0]).text(code))


def short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def _module_of(code: Any) -> str:
    while isinstance(code, (functools.partial, types.MethodType)):
        code = code.func if isinstance(code, functools.partial) else code.__func__
    return str(getattr(code, "__module__", None) or type(code).__module__)


class _Fingerprint:
    """Renders an object and everything that it refers to as text. `package` counts as user code wherever it is."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._directory = _directory_of(package)
        self._open: dict[int, int] = {}  # the objects that are being rendered, with their depth
        self._done: dict[int, tuple[Any, str]] = {}  # rendered objects; keeping them alive keeps their ids unique

    def text(self, value: Any) -> str:
        """Return the text of an object, or the hash of its text if the text is long."""
        if isinstance(value, SCALARS) and type(value) in SCALARS:
            return repr(self._relative(value) if isinstance(value, str) else value)
        if id(value) in self._done:
            return self._done[id(value)][1]
        if id(value) in self._open:
            return f"<recursion {len(self._open) - self._open[id(value)]}>"
        self._open[id(value)] = len(self._open)
        text = self._render(value)
        del self._open[id(value)]
        self._done[id(value)] = value, text if len(text) < LONGEST_TEXT else short_hash(text)
        return self._done[id(value)][1]

    def _render(self, value: Any) -> str:
        if isinstance(value, types.ModuleType):
            return value.__name__
        if isinstance(value, (types.FunctionType, type)):
            if self._is_library(value.__module__):
                return f"{value.__module__}.{value.__qualname__}"
            return self._function(value) if isinstance(value, types.FunctionType) else self._class(value)
        if type(value) in (list, tuple):
            return f"{type(value).__name__}{list(map(self.text, value))}"
        if type(value) in (set, frozenset):
            return f"set{sorted(map(self.text, value))}"
        if type(value) in (dict, types.MappingProxyType):
            return f"dict{sorted((self.text(key), self.text(item)) for key, item in value.items())}"
        return self._wrapper(value) or self._object(value)

    def _wrapper(self, value: Any) -> str:
        """Return the text of an object that wraps functions; empty if it wraps none."""
        if isinstance(value, types.MethodType):
            return f"method({self.text(value.__func__)},{self.text(value.__self__)})"
        if isinstance(value, functools.partial):
            return f"partial({self.text(value.func)},{self.text(value.args)},{self.text(value.keywords)})"
        if isinstance(value, (staticmethod, classmethod)):
            return f"{type(value).__name__}({self.text(value.__func__)})"
        if isinstance(value, property):
            return f"property({self.text(value.fget)},{self.text(value.fset)})"
        if isinstance(value, functools.cached_property):
            return f"cached({self.text(value.func)})"
        # The attribute of functools.cache. A plain getattr could run the code of a user's __getattr__.
        if isinstance(wrapped := inspect.getattr_static(value, "__wrapped__", None), types.FunctionType):
            return f"wrapper({self.text(wrapped)})"
        if isinstance(value, (types.BuiltinFunctionType, types.MethodDescriptorType)):
            return f"builtin {value.__qualname__}"
        return ""

    def _object(self, value: Any) -> str:
        kind = type(value)
        if kind.__module__ == "numpy" and hasattr(value, "tobytes"):
            content = hashlib.sha256(value.tobytes()).hexdigest()
            return f"array({value.dtype},{getattr(value, 'shape', ())},{content})"
        if kind.__module__ == "re" and hasattr(value, "pattern"):  # its repr is cut off
            return f"pattern({value.pattern!r},{value.flags})"
        if self._is_library(kind.__module__):
            name = f"{kind.__module__}.{kind.__qualname__}"
            if isinstance(value, PurePath):
                return f"{name}({self.text(str(value))})"
            is_value = kind.__module__ in VALUE_MODULES or kind.__module__.split(".")[0] in VALUE_MODULES
            return f"{name}{value!r}" if is_value else name
        items: list[str] = []
        if isinstance(value, (list, tuple, set, frozenset)):
            items = [self.text(item) for item in value]
        elif isinstance(value, dict):
            items = [f"{self.text(key)}:{self.text(item)}" for key, item in value.items()]
        elif base := next((base for base in (int, float, str, bytes) if isinstance(value, base)), None):
            items = [base.__repr__(value)]
        slots = [name for base in kind.__mro__ for name in _slots(base) if hasattr(value, name)]
        state = {**{name: getattr(value, name) for name in slots}, **getattr(value, "__dict__", {})}
        return f"object({self.text(kind)},{self.text(state)},{sorted(items)})"

    def _class(self, value: type) -> str:
        bases = [self.text(base) for base in value.__bases__ if base is not object]
        attributes = [
            (name, self.text(attribute))
            for name, attribute in sorted(vars(value).items())
            if name not in IGNORED_ATTRIBUTES and not name.startswith(IGNORED_PREFIX)
        ]
        return f"class({bases},{attributes})"

    def _function(self, value: types.FunctionType) -> str:
        names = CodeNames(value.__code__, self.text)
        body = names.render()
        cells = dict(zip(value.__code__.co_freevars, value.__closure__ or (), strict=True))
        closure = []
        for name in sorted(cells, key=names.number):
            try:
                closure.append(self.text(cells[name].cell_contents))
            except ValueError:  # the variable has no value yet
                closure.append("<empty>")
        defaults = f"{self.text(value.__defaults__)},{self.text(value.__kwdefaults__)}"
        return f"def({body},{defaults},{closure},{self._globals(value.__code__, value.__globals__)})"

    def _globals(self, code: types.CodeType, module: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return the names and texts of the globals that the code uses.

        Of a user's module, return the attributes whose names occur in the code.
        """
        names = sorted(names_used(code))
        values = {name: module[name] for name in names if name in module} | self._imported(code)
        found = []
        for name, value in sorted(values.items()):
            if isinstance(value, types.ModuleType) and not self._is_library(value.__name__):
                used = [attribute for attribute in names if attribute != name and hasattr(value, attribute)]
                found += [(f"{name}.{attribute}", self.text(getattr(value, attribute))) for attribute in used]
            else:
                found.append((name, self.text(value)))
        return found

    def _imported(self, code: types.CodeType) -> dict[str, types.ModuleType]:
        """Return the modules of the user's package that the code imports when it runs."""
        modules = {}
        for name in modules_imported(code):
            if name.split(".")[0] == self._package:
                with suppress(Exception):  # user code may raise anything while it is imported
                    modules[name] = importlib.import_module(name)
        return modules

    def _relative(self, text: str) -> str:
        """Return a path inside the package without the package's directory, and any other text unchanged."""
        is_inside = self._directory and f"{text}{os.sep}".startswith(f"{self._directory}{os.sep}")
        return f"<{self._package}>{text.removeprefix(self._directory)}" if is_inside else text

    def _is_library(self, module: str | None) -> bool:
        return is_library(module or "", self._package)


def _directory_of(package: str) -> str:
    """Return the directory of a package, or of a module that is in none; empty if it is not imported from a file."""
    module = sys.modules.get(package)
    file = getattr(module, "__file__", None)
    return next(iter(getattr(module, "__path__", [])), str(Path(file).parent) if file else "")


def _slots(kind: type) -> list[str]:
    slots = vars(kind).get("__slots__", ())
    return [slots] if isinstance(slots, str) else [name for name in slots if not name.startswith("__")]
