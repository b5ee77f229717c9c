"""Read a function's parameters from its source or by inspection, and compare them with a step.

Parameters before the '*' are inputs, and parameters after the '*' are settings. A positional-only parameter takes the
step's only streaming input, whatever the name of the input.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from headrace.config.locations import closest_name, fix_for_unknown_name
from headrace.config.models import Step

DURATION_TYPE = re.compile(r"\bDuration\b")  # in an annotation: the type Duration of headrace.transforms.gold
# A copy of that type's pattern: the modules of transforms share no code with others, so that users can copy them.
TRANSFORM_DURATION = re.compile(r"(\s*[1-9]\d*\s+(milli|micro)?(second|minute|hour|day|week)s?)+\s*")


@dataclass(frozen=True)
class Parameters:
    """A function's parameters. `inputs` and `settings` map a parameter's name to whether it is required."""

    stream: str | None  # the positional-only parameter that takes the only streaming input
    inputs: dict[str, bool]
    settings: dict[str, bool]
    accepts_any_input: bool = False  # the function has a parameter such as **dimensions
    # Required positional-only parameters after `stream`. No input can be passed to them.
    unreachable: tuple[str, ...] = ()
    # Settings annotated as Duration. Only `parameters_in_source` sets this, for the static checks.
    durations: frozenset[str] = frozenset()

    @property
    def required(self) -> tuple[str, ...]:
        """The names of all required parameters."""
        stream = () if self.stream is None else (self.stream,)
        named = (name for name, is_required in (*self.inputs.items(), *self.settings.items()) if is_required)
        return (*stream, *self.unreachable, *named)


@dataclass(frozen=True)
class Mismatch:
    """A difference between a step and a function's parameters: the step's key path, a message and a fix."""

    path: tuple[str, ...]
    message: str
    fix: str


def parameters_in_source(function: ast.FunctionDef) -> Parameters:
    """Return the parameters of a parsed function, without importing it."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    required_count = len(positional) - len(arguments.defaults)
    is_required = {argument.arg: index < required_count for index, argument in enumerate(positional)}
    keywords = arguments.kwonlyargs
    return Parameters(
        stream=arguments.posonlyargs[0].arg if arguments.posonlyargs else None,
        inputs={argument.arg: is_required[argument.arg] for argument in arguments.args},
        settings={key.arg: default is None for key, default in zip(keywords, arguments.kw_defaults, strict=True)},
        accepts_any_input=arguments.kwarg is not None,
        unreachable=tuple(argument.arg for argument in arguments.posonlyargs[1:] if is_required[argument.arg]),
        durations=frozenset(
            key.arg for key in keywords if key.annotation and DURATION_TYPE.search(ast.unparse(key.annotation))
        ),
    )


def parameters_of(function: Callable[..., Any]) -> Parameters:
    """Return the parameters of an imported function, except `durations`."""
    stream: str | None = None
    inputs: dict[str, bool] = {}
    settings: dict[str, bool] = {}
    accepts_any_input = False
    unreachable: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        is_required = parameter.default is parameter.empty
        if parameter.kind is parameter.POSITIONAL_ONLY:
            if stream is None:
                stream = parameter.name
            elif is_required:
                unreachable.append(parameter.name)
        elif parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            inputs[parameter.name] = is_required
        elif parameter.kind is parameter.KEYWORD_ONLY:
            settings[parameter.name] = is_required
        elif parameter.kind is parameter.VAR_KEYWORD:
            accepts_any_input = True
    return Parameters(stream, inputs, settings, accepts_any_input, tuple(unreachable))


def find_mismatches(parameters: Parameters, step: Step) -> Iterator[Mismatch]:
    """Yield the differences between a function's parameters and the inputs and settings of a step."""
    named_inputs = list(step.reads)
    if parameters.stream is not None:
        streams = [name for name in step.reads if not step.reads[name].static]
        if len(streams) != 1:
            message = f"'{parameters.stream}' takes the step's only streaming input, but the step has {len(streams)}"
            yield Mismatch(("reads",), message, "read the others with static: true, or use another transform")
        # The first stream is passed to `parameters.stream`, and the other inputs are matched by name.
        named_inputs = [name for name in step.reads if name not in streams[:1]]
    for name in parameters.unreachable:
        message = f"no input can be passed to '{name}': only the first parameter before the '/' takes an input"
        yield Mismatch(("transform",), message, "write the '/' after the first parameter")
    yield from _input_mismatches(parameters, named_inputs)
    yield from _setting_mismatches(parameters, step)


def _input_mismatches(parameters: Parameters, inputs: list[str]) -> Iterator[Mismatch]:
    """Yield the differences between a function's parameters for inputs and the inputs that are matched by name."""
    intended: set[str] = set()  # parameters that are not reported as missing, because a misspelled name is
    for name in inputs:
        if name in parameters.settings:
            fix = "give the input another name"
            yield Mismatch(("reads", name), f"input '{name}' has the name of a setting", fix)
        elif name not in parameters.inputs and not parameters.accepts_any_input:
            unused = [other for other in parameters.inputs if other not in inputs]
            intended |= _intended_parameter(name, unused)
            fix = fix_for_unknown_name(name, unused, "remove it, or add a parameter before the '*'")
            yield Mismatch(("reads", name), f"the transform has no input '{name}'", fix)
    for name, is_required in parameters.inputs.items():
        if is_required and name not in inputs and name not in intended:
            fix = f"add it: reads: {{{name}: …}}"
            yield Mismatch(("reads",), f"the transform's input '{name}' is not read", fix)


def _setting_mismatches(parameters: Parameters, step: Step) -> Iterator[Mismatch]:
    """Yield the differences between a function's parameters for settings and the settings of a step."""
    intended: set[str] = set()  # parameters that are not reported as missing, because a misspelled name is
    for name, value in step.with_.items():
        if name in parameters.inputs or name == parameters.stream:
            fix = "write inputs under reads; a parameter after the '*' is a setting"
            yield Mismatch(("with", name), f"'{name}' is an input of the transform, not a setting", fix)
        elif name in parameters.durations and value is not None and not TRANSFORM_DURATION.fullmatch(str(value)):
            fix = "write numbers and units, like '5 minutes'"
            yield Mismatch(("with", name), f"setting '{name}': {value!r} is not a duration", fix)
        elif name not in parameters.settings:
            unused = [other for other in parameters.settings if other not in step.with_]
            intended |= _intended_parameter(name, unused)
            fix = fix_for_unknown_name(name, unused, "remove it, or add a parameter after the '*'")
            yield Mismatch(("with", name), f"the transform has no setting '{name}'", fix)
    for name, is_required in parameters.settings.items():
        if is_required and name not in step.with_ and name not in intended:
            fix = f"add it: with: {{{name}: …}}"
            yield Mismatch(("with",), f"the transform's setting '{name}' is missing", fix)


def _intended_parameter(name: str, unused: Collection[str]) -> set[str]:
    """Return a set with the unused parameter that an unknown name probably misspells; an empty set if there is none.

    The callers do not report this parameter as missing, because they report the misspelled name.
    """
    parameter = closest_name(name, unused)
    return set() if parameter is None else {parameter}
