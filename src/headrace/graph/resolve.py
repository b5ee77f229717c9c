"""The steps of a bundle as a graph: their order, and the functions that they name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from headrace.config.models import Step
from headrace.errors import ConfigurationError, Problem
from headrace.graph.function_signatures import mismatches, parameters_of

# ── Without importing ─────────────────────────────────────────────────────────────────────────────────


# ── With importing ────────────────────────────────────────────────────────────────────────────────────


def resolve(path: str) -> Any:
    """Imports what `module:name` names."""
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except AttributeError as error:
        if error.obj is not sys.modules.get(module):
            raise _import_failed(module, error) from error
        fix = f"define it in {module}, or correct the import path"
        raise ConfigurationError(f"module '{module}' has no '{name}'", fix=fix) from error
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise _import_failed(module, error) from error
        fix = "correct the import path, or install the package"
        raise ConfigurationError(f"there is no module '{module}'", fix=fix) from error
    except Exception as error:  # a module of the user's may raise anything
        raise _import_failed(module, error) from error


def _import_failed(module: str, error: Exception) -> ConfigurationError:
    message = f"importing '{module}' failed: {type(error).__name__}: {error}"
    return ConfigurationError(message, fix=f"correct the module; try: python -c 'import {module}'")


def bind_arguments(
    step: Step, function: Callable[..., Any], inputs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What to call a step's transform with: its inputs by name, and the settings of `with`."""
    if not callable(function):
        fix = "name a function"
        raise ConfigurationError(f"step '{step.name}': {step.transform} is not a function", fix=fix)
    takes = parameters_of(function)
    wrong = list(mismatches(takes, step))
    if wrong:
        raise ConfigurationError.of(Problem("", f"step '{step.name}': {one.message}", one.fix) for one in wrong)
    left = dict(inputs)
    positional: list[Any] = []
    if takes.stream is not None:
        positional.append(left.pop(next(name for name in inputs if not step.reads[name].static)))
    return tuple(positional), {**left, **step.with_}
