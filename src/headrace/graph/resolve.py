"""Import the objects that steps name by import path, and bind inputs and settings to a transform's parameters."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from headrace.config.models import Step
from headrace.errors import ConfigurationError, Problem
from headrace.graph.function_signatures import find_mismatches, parameters_of


def resolve(path: str) -> Any:
    """Return the object at an import path `module:name`.

    Raise ConfigurationError if the module cannot be imported or does not have the name.
    """
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except AttributeError as error:
        if error.obj is not sys.modules.get(module):  # the error was raised inside the module's own code
            raise _import_failed(module, error) from error
        fix = f"define it in {module}, or correct the import path"
        raise ConfigurationError(f"module '{module}' has no '{name}'", fix=fix) from error
    except ModuleNotFoundError as error:
        # The missing module is the module itself or one of its parent packages.
        is_module_missing = error.name is not None and f"{module}.".startswith(f"{error.name}.")
        if not is_module_missing:  # the module exists, but another module that it imports is missing
            raise _import_failed(module, error) from error
        fix = "correct the import path, or install the package"
        raise ConfigurationError(f"there is no module '{module}'", fix=fix) from error
    except Exception as error:  # user code may raise anything while it is imported
        raise _import_failed(module, error) from error


def _import_failed(module: str, error: Exception) -> ConfigurationError:
    """Return the error for a module that raises `error` when it is imported."""
    message = f"importing '{module}' failed: {type(error).__name__}: {error}"
    return ConfigurationError(message, fix=f"correct the module; try: python -c 'import {module}'")


def bind_arguments(
    step: Step, function: Callable[..., Any], inputs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the positional and keyword arguments for a step's transform.

    The arguments are the step's inputs (`inputs` maps the name of each input to its DataFrame) and the settings under
    `with`. Raise ConfigurationError if `function` is not callable, or if inputs or settings do not match its
    parameters.
    """
    if not callable(function):
        message = f"step '{step.name}': {step.transform} is not a function"
        raise ConfigurationError(message, fix="write the import path of a function")
    parameters = parameters_of(function)
    mismatches = list(find_mismatches(parameters, step))
    if mismatches:
        raise ConfigurationError.of(
            Problem("", f"step '{step.name}': {mismatch.message}", mismatch.fix) for mismatch in mismatches
        )
    named_inputs = dict(inputs)
    positional: list[Any] = []
    if parameters.stream is not None:
        stream = next(name for name in inputs if not step.reads[name].static)
        positional.append(named_inputs.pop(stream))
    return tuple(positional), {**named_inputs, **step.with_}
