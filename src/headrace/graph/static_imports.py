"""Find the definition that an import path names by parsing the module's source, without importing or running it."""

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
    """The module does not exist or cannot be parsed, or it does not define the name."""

    message: str
    fix: str


@dataclass(frozen=True)
class Unchecked:
    """The object exists or may exist, but its parameters cannot be read from the source."""

    reason: str


Definition = ast.FunctionDef | Missing | Unchecked


def find_definition(path: str, source: Path) -> Definition:
    """Return what `module:name` names. The directory `source` is searched before Python's own path."""
    module, _, name = path.partition(":")
    spec = _find_spec(module, source)
    if isinstance(spec, Missing):
        return spec
    if spec.origin is None or not spec.origin.endswith(".py"):
        return Unchecked(f"module '{module}' is not written in Python")
    try:
        parsed = _parse(spec.origin, Path(spec.origin).stat().st_mtime_ns)
    except (SyntaxError, ValueError, OSError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        return Missing(f"module '{module}' cannot be read: {reason}{line}", f"correct {Path(spec.origin).name}")
    return _definition_in(parsed, module, name)


def _find_spec(module: str, source: Path) -> ModuleSpec | Missing:
    """Find the module part by part, like an import, but without importing its parents."""
    importlib.invalidate_caches()
    search_path: list[str] | None = [str(source), *sys.path]
    spec: ModuleSpec | None = None
    for index, part in enumerate(module.split(".")):
        # Pass the last part of the name: for a full name, a directory without __init__.py would import its parent.
        spec = PathFinder.find_spec(part, search_path)
        if spec is None and index == 0:
            spec = importlib.util.find_spec(part)  # a built-in module, or an editable installation
        if spec is None:
            return Missing(f"there is no module '{module}'", _suggest_module(part, search_path or [], source))
        search_path = list(spec.submodule_search_locations or [])
    return spec if spec is not None else Missing(f"there is no module '{module}'", "name one")


def _suggest_module(name: str, search_path: list[str], source: Path) -> str:
    """Return the fix for an unknown module: a similar name of the user's own modules, or where to write it."""
    directories = [
        Path(directory)
        for directory in search_path
        if directory == str(source) or len(search_path) == 1 or "packages" not in directory
    ]
    modules = {
        file.stem
        for directory in directories
        if directory.is_dir() and directory.name != f"python{sys.version_info[0]}.{sys.version_info[1]}"
        for file in directory.iterdir()
        if file.stem.isidentifier() and (file.suffix == ".py" or (file.is_dir() and not file.stem.startswith("_")))
    }
    return closest_match(name, modules, f"write it under {source.name}/, or install it")


@dataclass(frozen=True)
class _ParsedModule:
    functions: dict[str, ast.FunctionDef]
    names: frozenset[str]
    may_define_others: bool  # by a star import or __getattr__


@lru_cache(maxsize=256)
def _parse(file: str, modified: int) -> _ParsedModule:
    """Parse a module. `modified` is part of the cache's key: a changed file is parsed again."""
    tree = ast.parse(Path(file).read_bytes(), file)
    functions: dict[str, ast.FunctionDef] = {}
    names: set[str] = set()
    may_define_others = False
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef):
            functions[statement.name] = statement
            may_define_others = may_define_others or statement.name == "__getattr__"
            continue
        bound = _bound_names(statement)
        may_define_others = may_define_others or "*" in bound
        names |= bound
        for name in bound:
            functions.pop(name, None)  # the name was bound again: it may be another function than the `def`
    return _ParsedModule(functions, frozenset(names), may_define_others)


def _bound_names(statement: ast.AST) -> set[str]:
    """Return all names that a statement of the module's body binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.Name):
        return {statement.id} if isinstance(statement.ctx, ast.Store) else set()
    return {name for child in ast.iter_child_nodes(statement) for name in _bound_names(child)}


def _definition_in(parsed: _ParsedModule, module: str, name: str) -> Definition:
    if name in parsed.functions:
        function = parsed.functions[name]
        return Unchecked(f"'{module}:{name}' is decorated") if function.decorator_list else function
    if name in parsed.names:
        return Unchecked(f"'{module}:{name}' is not defined by def at module level")
    if parsed.may_define_others:
        return Unchecked(f"module '{module}' may define more names when it is imported")
    known = {other for other in (*parsed.functions, *parsed.names) if not other.startswith("_")}
    return Missing(f"module '{module}' has no '{name}'", closest_match(name, known, f"define it in {module}"))
