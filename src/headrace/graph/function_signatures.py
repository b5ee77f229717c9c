"""What a function takes, by its source or by itself: inputs before the star, settings after it."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from headrace.config.locations import closest_match
from headrace.config.models import Step

DURATION = re.compile(r"\bDuration\b")
SPAN = re.compile(r"(\s*[1-9]\d*\s+(milli|micro)?(second|minute|hour|day|week)s?)+\s*")  # as the built-in gold has it


@dataclass(frozen=True)
class Parameters:
    """Names of parameters, each with whether it must be given."""

    stream: str | None  # the positional-only parameter that takes the one streaming input
    inputs: dict[str, bool]
    settings: dict[str, bool]
    others: bool = False  # **dimensions
    surplus: tuple[str, ...] = ()  # further positional-only parameters: no name of an input can reach them
    durations: frozenset[str] = frozenset()  # settings whose type is called Duration

    @property
    def required(self) -> tuple[str, ...]:
        """The names of all parameters without which it cannot be called."""
        stream = () if self.stream is None else (self.stream,)
        named = (name for name, needed in (*self.inputs.items(), *self.settings.items()) if needed)
        return (*stream, *self.surplus, *named)


@dataclass(frozen=True)
class Mismatch:
    """One way in which a step does not fit a function: the key it concerns, what is wrong, how to mend it."""

    path: tuple[str, ...]
    message: str
    fix: str


def parameters_in_source(function: ast.FunctionDef) -> Parameters:
    """The parameters of a function that is only read, never imported."""
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    required = len(positional) - len(given.defaults)
    needs = {argument.arg: at < required for at, argument in enumerate(positional)}
    stream = given.posonlyargs[0].arg if given.posonlyargs else None
    return Parameters(
        stream,
        {argument.arg: needs[argument.arg] for argument in given.args},
        {argument.arg: default is None for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)},
        given.kwarg is not None,
        tuple(argument.arg for argument in given.posonlyargs[1:] if needs[argument.arg]),
        frozenset(a.arg for a in given.kwonlyargs if a.annotation and DURATION.search(ast.unparse(a.annotation))),
    )


def parameters_of(function: Callable[..., Any]) -> Parameters:
    """The parameters of a function that is there."""
    stream: str | None = None
    inputs: dict[str, bool] = {}
    settings: dict[str, bool] = {}
    others = False
    surplus: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        required = parameter.default is parameter.empty
        if parameter.kind is parameter.POSITIONAL_ONLY:
            surplus += [parameter.name] if stream is not None and required else []
            stream = stream or parameter.name
        elif parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            inputs[parameter.name] = required
        elif parameter.kind is parameter.KEYWORD_ONLY:
            settings[parameter.name] = required
        elif parameter.kind is parameter.VAR_KEYWORD:
            others = True
    return Parameters(stream, inputs, settings, others, tuple(surplus))


def mismatches(takes: Parameters, step: Step) -> Iterator[Mismatch]:
    """What keeps a step from calling a function of these parameters."""
    inputs = list(step.reads)
    if takes.stream is not None:
        streams = [name for name in inputs if not step.reads[name].static]
        if len(streams) != 1:
            message = f"'{takes.stream}' takes the one streaming input, but there are {len(streams)}"
            yield Mismatch(("reads",), message, "read the others with static: true, or take another transform")
        inputs = [name for name in inputs if name not in streams[:1]]
    for name in takes.surplus:
        message = f"nothing can be given to '{name}': only one parameter before the '/' takes a stream"
        yield Mismatch(("transform",), message, "write the '/' after the first parameter")
    yield from _inputs(takes, inputs)
    yield from _settings(takes, step)


def _inputs(takes: Parameters, inputs: list[str]) -> Iterator[Mismatch]:
    for name in inputs:
        if name in takes.settings:
            fix = "give the input another name"
            yield Mismatch(("reads", name), f"input '{name}' has the name of a setting", fix)
        elif name not in takes.inputs and not takes.others:
            missing = [other for other in takes.inputs if other not in inputs]
            fix = closest_match(name, missing, "take it out, or add a parameter before the '*'")
            yield Mismatch(("reads", name), f"the transform has no input '{name}'", fix)
    for name, required in takes.inputs.items():
        if required and name not in inputs:
            fix = f"add it: reads: {{{name}: …}}"
            yield Mismatch(("reads",), f"the transform's input '{name}' is not read", fix)


def _settings(takes: Parameters, step: Step) -> Iterator[Mismatch]:
    for name in step.with_:
        if name in takes.inputs or name == takes.stream:
            fix = "inputs stand under reads; a setting must stand after the '*'"
            yield Mismatch(("with", name), f"'{name}' is an input of the transform, not a setting", fix)
        elif name in takes.durations and step.with_[name] is not None and not SPAN.fullmatch(str(step.with_[name])):
            fix = "write numbers and units, like '5 minutes'"
            yield Mismatch(("with", name), f"setting '{name}': {step.with_[name]!r} is not a duration", fix)
        elif name not in takes.settings:
            missing = [other for other in takes.settings if other not in step.with_]
            fix = closest_match(name, missing, "take it out, or add a parameter after the '*'")
            yield Mismatch(("with", name), f"the transform has no setting '{name}'", fix)
    for name, required in takes.settings.items():
        if required and name not in step.with_:
            fix = f"add it: with: {{{name}: …}}"
            yield Mismatch(("with",), f"the transform's setting '{name}' is missing", fix)
