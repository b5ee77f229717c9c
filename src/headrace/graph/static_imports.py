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

from headrace.config.locations import fix_for_unknown_name


@dataclass(frozen=True)
class Missing:
    """The object cannot be found: the module does not exist, cannot be parsed, or does not define the name."""

    message: str
    fix: str


@dataclass(frozen=True)
class Unchecked:
    """The object exists or may exist, but its parameters cannot be read from the source."""

    reason: str


Definition = ast.FunctionDef | Missing | Unchecked


def find_definition(path: str, source_directory: Path) -> Definition:
    """Return the definition of the object at an import path `module:name`.

    The module is searched in the source directory first, and then in sys.path and among editable installations.
    """
    module, _, name = path.partition(":")
    spec = _find_spec(module, source_directory)
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


def _find_spec(module: str, source_directory: Path) -> ModuleSpec | Missing:
    """Find a module by searching for each part of its name in turn, without importing the parent packages."""
    importlib.invalidate_caches()
    search_path: list[str] = [str(source_directory), *sys.path]
    spec: ModuleSpec | None = None
    for index, part in enumerate(module.split(".")):
        # Search for one part of the name at a time: given the full name of a directory without __init__.py, find_spec
        # would import the parent package.
        spec = PathFinder.find_spec(part, search_path)
        if spec is None and index == 0:
            spec = importlib.util.find_spec(part)  # a built-in module, or an editable installation
        if spec is None:
            return Missing(f"there is no module '{module}'", _suggest_module(part, search_path, source_directory))
        search_path = list(spec.submodule_search_locations or [])
    return spec if spec is not None else Missing(f"there is no module '{module}'", "write module:name")


def _suggest_module(name: str, search_path: list[str], source_directory: Path) -> str:
    """Return the fix for an unknown module: name a similar module in the search path, or where to write the module.

    If the search path is sys.path, do not suggest modules of the standard library or of site-packages.
    """
    standard_library = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    is_in_package = len(search_path) == 1  # the search path of a package is its own directory
    directories = [
        Path(directory)
        for directory in search_path
        if directory == str(source_directory)
        or is_in_package
        or "packages" not in directory  # site-packages or dist-packages
    ]
    modules = {
        file.stem
        for directory in directories
        if directory.is_dir() and directory.name != standard_library
        for file in directory.iterdir()
        if file.stem.isidentifier() and (file.suffix == ".py" or (file.is_dir() and not file.stem.startswith("_")))
    }
    return fix_for_unknown_name(name, modules, f"write it under {source_directory.name}/, or install it")


@dataclass(frozen=True)
class _ParsedModule:
    """The names that a module defines at module level."""

    functions: dict[str, ast.FunctionDef]
    other_names: frozenset[str]  # of classes, variables, imports and others
    may_define_more: bool  # by a star import or __getattr__


@lru_cache(maxsize=256)
def _parse(file: str, modified_ns: int) -> _ParsedModule:
    """Parse a module. The modification time is part of the cache's key, so that a changed file is parsed again."""
    tree = ast.parse(Path(file).read_bytes(), file)
    functions: dict[str, ast.FunctionDef] = {}
    other_names: set[str] = set()
    may_define_more = False
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef):
            functions[statement.name] = statement
            may_define_more = may_define_more or statement.name == "__getattr__"
            continue
        bound_names = _bound_names(statement)
        may_define_more = may_define_more or "*" in bound_names
        other_names |= bound_names
        for name in bound_names:
            functions.pop(name, None)  # the name is bound again: the function above may have been replaced
    return _ParsedModule(functions, frozenset(other_names), may_define_more)


def _bound_names(statement: ast.AST) -> set[str]:
    """Return all names that a statement at module level binds; "*" stands for those of a star import."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.Name):
        return {statement.id} if isinstance(statement.ctx, ast.Store) else set()
    return {name for child in ast.iter_child_nodes(statement) for name in _bound_names(child)}


def _definition_in(parsed: _ParsedModule, module: str, name: str) -> Definition:
    """Return the definition of a name in the parsed module, whose name is `module`."""
    if name in parsed.functions:
        function = parsed.functions[name]
        return Unchecked(f"'{module}:{name}' is decorated") if function.decorator_list else function
    if name in parsed.other_names:
        return Unchecked(f"'{module}:{name}' is not defined by def at module level")
    if parsed.may_define_more:
        return Unchecked(f"module '{module}' may define more names when it is imported")
    known = {other for other in (*parsed.functions, *parsed.other_names) if not other.startswith("_")}
    return Missing(f"module '{module}' has no '{name}'", fix_for_unknown_name(name, known, f"define it in {module}"))
