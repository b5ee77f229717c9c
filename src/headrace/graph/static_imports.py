"""Finds what an import path names by reading the module's source: nothing of it is imported or run."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from headrace.config.locations import closest_match


@dataclass(frozen=True)
class Missing:
    """The module or the name in it is not there."""

    message: str
    fix: str


@dataclass(frozen=True)
class Unchecked:
    """It is there, or may be, but its source does not say what it takes."""

    why: str


Definition = ast.FunctionDef | Missing | Unchecked


def find_definition(path: str, source: Path) -> Definition:
    """What `module:name` names; `source` is the directory that is searched before Python's own."""
    module, _, name = path.partition(":")
    spec = _spec(module, source)
    if isinstance(spec, Missing):
        return spec
    if spec.origin is None or not spec.origin.endswith(".py"):
        return Unchecked(f"module '{module}' is not written in Python")
    try:
        written = _read(spec.origin, Path(spec.origin).stat().st_mtime_ns)
    except (SyntaxError, ValueError, OSError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        return Missing(f"module '{module}' cannot be read: {reason}{line}", f"correct {Path(spec.origin).name}")
    return _named(written, module, name)


def _spec(module: str, source: Path) -> ModuleSpec | Missing:
    """The module's place, found part by part as importing would, but without importing its parents."""
    importlib.invalidate_caches()
    where: list[str] | None = [str(source), *sys.path]
    spec: ModuleSpec | None = None
    for at, part in enumerate(module.split(".")):
        # By its last part alone: by its full name, a directory without __init__.py would ask for its parent's import.
        spec = PathFinder.find_spec(part, where)
        if spec is None and at == 0:
            spec = importlib.util.find_spec(part)  # built in, or installed as editable
        if spec is None:
            return Missing(f"there is no module '{module}'", _near(part, where or [], source))
        where = list(spec.submodule_search_locations or [])
    return spec if spec is not None else Missing(f"there is no module '{module}'", "name one")


def _near(part: str, where: list[str], source: Path) -> str:
    places = [Path(place) for place in where if place == str(source) or len(where) == 1 or "packages" not in place]
    siblings = {
        file.stem
        for place in places
        if place.is_dir() and place.name != f"python{sys.version_info[0]}.{sys.version_info[1]}"
        for file in place.iterdir()
        if file.stem.isidentifier() and (file.suffix == ".py" or (file.is_dir() and not file.stem.startswith("_")))
    }
    return closest_match(part, siblings, f"write it under {source.name}/, or install it")


@dataclass(frozen=True)
class _Written:
    functions: dict[str, ast.FunctionDef]
    names: frozenset[str]
    open: bool  # a star import or __getattr__ may bring other names


@lru_cache(maxsize=256)
def _read(file: str, changed: int) -> _Written:
    tree = ast.parse(Path(file).read_bytes(), file)
    functions: dict[str, ast.FunctionDef] = {}
    names: set[str] = set()
    opens = False
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef):
            functions[statement.name] = statement
            opens = opens or statement.name == "__getattr__"
            continue
        bound = _bound(statement)
        opens = opens or "*" in bound
        names |= bound
        for name in bound:
            functions.pop(name, None)  # bound anew: what it is now is not said by a def
    return _Written(functions, frozenset(names), opens)


def _bound(statement: ast.AST) -> set[str]:
    """All names that a statement of the module's body binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.Name):
        return {statement.id} if isinstance(statement.ctx, ast.Store) else set()
    return {name for child in ast.iter_child_nodes(statement) for name in _bound(child)}


def _named(written: _Written, module: str, name: str) -> Definition:
    if name in written.functions:
        function = written.functions[name]
        return Unchecked(f"'{module}:{name}' is decorated") if function.decorator_list else function
    if name in written.names:
        return Unchecked(f"'{module}:{name}' is not defined by def at module level")
    if written.open:
        return Unchecked(f"module '{module}' makes names while it is imported")
    known = {other for other in (*written.functions, *written.names) if not other.startswith("_")}
    return Missing(f"module '{module}' has no '{name}'", closest_match(name, known, f"define it in {module}"))
