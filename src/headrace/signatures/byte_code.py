"""Render the byte code of functions as text that does not depend on the names of local variables."""

from __future__ import annotations

import dis
from collections.abc import Callable
from types import CodeType
from typing import Any

from headrace.signatures.control_flow import JUMPS, ControlFlow

# Instructions that set up closures. They are left out: their order is that of the variables' names (3.11).
CLOSURE_INSTRUCTIONS = {"MAKE_CELL", "COPY_FREE_VARS", "LOAD_CLOSURE"}
VARIABLE_INSTRUCTIONS = {*dis.haslocal, *dis.hasfree}
BEHAVIOUR_FLAGS = 0x3AC  # *args, **kwargs, generator, coroutine; other flags depend on docstrings and future imports


class CodeNames:
    """Renders a code object, with variables numbered: parameters first, then in the order of their first use.

    `constant` renders constants. Nested functions share the numbers of the variables that they take from `outer`.
    """

    def __init__(self, code: CodeType, constant: Callable[[Any], str], outer: CodeNames | None = None) -> None:
        self._code = code
        self._constant = constant
        self._outer = outer
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)  # *args and **kwargs
        self._numbers = {name: f"p{number}" for number, name in enumerate(code.co_varnames[:count])}

    def number(self, name: str) -> str:
        """Return the text that stands for a variable."""
        if name not in self._numbers:
            if self._outer and name in self._code.co_freevars:
                self._numbers[name] = f"outer {self._outer.number(name)}"
            else:
                self._numbers[name] = f"v{len(self._numbers)}"
        return self._numbers[name]

    def render(self) -> str:
        """Return the instructions as text. Docstrings are no part of them."""
        code = self._code
        flags = code.co_flags & BEHAVIOUR_FLAGS
        parts = [f"{code.co_argcount},{code.co_kwonlyargcount},{flags}"]
        flow = ControlFlow(code)
        for instruction in flow.instructions:
            text = (
                ""
                if instruction.opname in CLOSURE_INSTRUCTIONS
                else f"{instruction.opname} {self._argument(instruction)}"
            )
            parts.append(f"{text} {flow.successors(instruction)}")
        return "code(" + ";".join(parts) + ")"

    def _argument(self, instruction: dis.Instruction) -> str:
        value = instruction.argval
        if instruction.opcode in VARIABLE_INSTRUCTIONS:
            names = value if isinstance(value, tuple) else (value,)  # 3.13 loads two variables at once
            return ",".join(map(self.number, names))
        if isinstance(value, CodeType):
            return CodeNames(value, self._constant, self).render()
        if instruction.opcode in dis.hasconst:
            return self._constant(value)
        if instruction.opcode in JUMPS:
            return ""
        return str(value)


def modules_imported(code: CodeType) -> set[str]:
    """Return the modules in the import statements of the code and of its nested functions.

    Relative imports are returned without their dots, so not by the module's full name.
    """
    imports = (item.argval for item in dis.get_instructions(code) if item.opname == "IMPORT_NAME")
    nested = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(filter(None, imports)).union(*map(modules_imported, nested))


def names_used(code: CodeType) -> set[str]:
    """Return the names of globals and attributes in the code and in its nested functions."""
    nested = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(names_used, nested))
