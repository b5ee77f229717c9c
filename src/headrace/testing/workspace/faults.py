"""Faults on demand: lost calls, lost answers, a throttled, missing or slow service, at the call that a test names."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from headrace.testing.workspace.http_messages import Answer, ApiError


class Call(NamedTuple):
    """One call that came in."""

    method: str
    path: str


class LostError(Exception):
    """The connection is dropped here."""


@dataclass(frozen=True)
class Fault:
    """What happens at the n-th call whose path holds the text."""

    when: str
    number: int
    path: str
    answer: Answer | None = None
    seconds: float = 0.0


class Faults:
    """The calls so far, and what is to go wrong with which of those to come; `path` counts only calls that hold it."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.on_call: Callable[[int, str], None] | None = None
        self._faults: list[Fault] = []
        self._lock = threading.Lock()

    def reset(self) -> None:
        """Forgets all faults and calls: the next call is number 1."""
        with self._lock:
            self.calls.clear()
            self._faults.clear()
            self.on_call = None

    def before(self, number: int, path: str = "") -> None:
        """The connection of that call breaks before the call does anything."""
        self._faults.append(Fault("before", number, path))

    def after(self, number: int, path: str = "") -> None:
        """That call is carried out, and its answer is lost."""
        self._faults.append(Fault("after", number, path))

    def throttle(self, number: int, path: str = "", *, retry_after: int = 1) -> None:
        """429: that call does nothing and is told to come again."""
        refusal = ApiError(429, "REQUEST_LIMIT_EXCEEDED", "Too many requests. Please wait a moment and try again.")
        self._refuse(number, path, refusal, retry_after)

    def unavailable(self, number: int, path: str = "", *, retry_after: int | None = None) -> None:
        """503: that call does nothing."""
        refusal = ApiError(503, "TEMPORARILY_UNAVAILABLE", "The service is temporarily unavailable.")
        self._refuse(number, path, refusal, retry_after)

    def broken(self, number: int, path: str = "") -> None:
        """500: that call does nothing."""
        self._refuse(number, path, ApiError(500, "INTERNAL_ERROR", "An internal error occurred."), None)

    def slow(self, number: int, seconds: float, path: str = "") -> None:
        """That call is carried out, and its answer comes so much later."""
        self._faults.append(Fault("after", number, path, seconds=seconds))

    def arrived(self, method: str, path: str) -> tuple[int, list[Fault]]:
        """Counts a call: its number, and the faults that are its own."""
        with self._lock:
            self.calls.append(Call(method, path))
            due = [fault for fault in self._faults if fault.path in path and fault.number == self._count(fault.path)]
            return len(self.calls), due

    def strike(self, when: str, number: int, due: list[Fault]) -> Answer | None:
        """Does what is due at this moment of a call: nothing, a wait, an answer instead, or LostError."""
        if self.on_call is not None:
            self.on_call(number, when)
        for fault in due:
            if fault.when != when:
                continue
            if fault.answer is not None:
                return fault.answer
            if not fault.seconds:
                raise LostError
            time.sleep(fault.seconds)
        return None

    def _refuse(self, number: int, path: str, refusal: ApiError, retry_after: int | None) -> None:
        plain = refusal.answer()
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        answer = Answer(plain.status, plain.body, headers=headers)
        self._faults.append(Fault("before", number, path, answer))

    def _count(self, path: str) -> int:
        return sum(path in call.path for call in self.calls)
