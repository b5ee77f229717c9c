"""Order the instructions of a code object by its control flow, which does not depend on how the source is formatted.

For tracing, the compiler keeps an instruction without effect (NOP) for a line such as `try:`, and it does not shorten a
jump to a jump on another line (3.11). So the offsets of instructions depend on line breaks.
"""

from __future__ import annotations

import dis
from bisect import bisect_left
from types import CodeType

WITHOUT_EFFECT = {"NOP", "EXTENDED_ARG", "CACHE"}
UNCONDITIONAL_JUMPS = {"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP_ABSOLUTE"}
ENDS = {"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"}
JUMPS = {*dis.hasjrel, *dis.hasjabs}


class ControlFlow:
    """The reachable instructions of a code object, in depth-first order.

    Instead of a jump that is always taken, its target follows.
    """

    def __init__(self, code: CodeType) -> None:
        bytecode = dis.Bytecode(code)
        self._all = [item for item in bytecode if item.opname not in WITHOUT_EFFECT]
        self._offsets = [item.offset for item in self._all]
        self._handlers = bytecode.exception_entries  # type: ignore[attr-defined]
        self.instructions: list[dis.Instruction] = []
        self._numbers: dict[int, int] = {}  # by offset, the position in `instructions`
        waiting = [0]
        while waiting:
            waiting = [*self._follow(waiting[0]), *waiting[1:]]

    def successors(self, instruction: dis.Instruction) -> str:
        """Return the positions of the instructions that can follow: by a jump, in order, or after an exception."""
        after = []
        if instruction.opcode in JUMPS:
            after.append(f"jump {self._number(instruction.argval)}")
        if instruction.opname not in ENDS:
            after.append(f"next {self._number(instruction.offset + 1)}")
        for start, end, target, depth, lasti in self._handlers:
            if start <= instruction.offset < end:
                after.append(f"handler {self._number(target)} {depth} {lasti}")
        return " ".join(after)

    def _follow(self, offset: int) -> list[int]:
        """Add the instructions from an offset on, up to an end or one that was added before.

        Return the targets of their jumps and exception handlers.
        """
        later: list[int] = []
        while (instruction := self._at(offset)) is not None and instruction.offset not in self._numbers:
            self._numbers[instruction.offset] = len(self.instructions)
            self.instructions.append(instruction)
            later += [instruction.argval] if instruction.opcode in JUMPS else []
            later += [target for start, end, target, *_ in self._handlers if start <= instruction.offset < end]
            if instruction.opname in ENDS:
                break
            offset = instruction.offset + 1
        return later

    def _at(self, offset: int) -> dis.Instruction | None:
        """Return the first instruction from an offset on; instead of a jump that is always taken, its target."""
        passed: set[int] = set()
        while (position := bisect_left(self._offsets, offset)) < len(self._all):
            instruction = self._all[position]
            if instruction.opname not in UNCONDITIONAL_JUMPS or instruction.offset in passed:
                return instruction
            passed.add(instruction.offset)
            offset = instruction.argval
        return None

    def _number(self, offset: int) -> int:
        instruction = self._at(offset)
        return self._numbers[instruction.offset] if instruction else -1
