"""Fault injection: drop, delay or reject the calls that a test chooses."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from headrace.testing.workspace.http_messages import ApiError, Response


class Call(NamedTuple):
    """One call that the workspace received."""

    method: str
    path: str


class ConnectionDroppedError(Exception):
    """The server must close the connection without a response."""


@dataclass(frozen=True)
class Fault:
    """A fault of the `number`-th call whose path contains `path`: a response, a delay, or a dropped connection."""

    when: str  # "before" or "after" the call takes effect
    number: int
    path: str
    response: Response | None = None  # with neither a response nor a delay, the connection is dropped
    delay_s: float = 0.0


class Faults:
    """The calls received so far, and the faults of future calls.

    The parameter `number` selects a call. It counts from 1 all calls since the last `reset`; with `path`, only those
    whose path contains that text. `retry_after` is the value of the header Retry-After in seconds; None omits it.

    `on_call`, if set, is called with the number of each call and "before" or "after": before the call takes effect, and
    again afterwards, unless a fault has dropped the request.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.on_call: Callable[[int, str], None] | None = None
        self._faults: list[Fault] = []
        self._lock = threading.Lock()

    def reset(self) -> None:
        """Forget all faults and calls: the next call is number 1."""
        with self._lock:
            self.calls.clear()
            self._faults.clear()
            self.on_call = None

    def drop_request(self, number: int, path: str = "") -> None:
        """Drop the connection before the call takes effect."""
        self._faults.append(Fault("before", number, path))

    def drop_response(self, number: int, path: str = "") -> None:
        """Drop the connection after the call has taken effect."""
        self._faults.append(Fault("after", number, path))

    def throttle(self, number: int, path: str = "", *, retry_after: int = 1) -> None:
        """Respond with 429; the call has no effect."""
        error = ApiError(429, "REQUEST_LIMIT_EXCEEDED", "Too many requests. Please wait a moment and try again.")
        self._reject(number, path, error, retry_after)

    def unavailable(self, number: int, path: str = "", *, retry_after: int | None = None) -> None:
        """Respond with 503; the call has no effect."""
        error = ApiError(503, "TEMPORARILY_UNAVAILABLE", "The service is temporarily unavailable.")
        self._reject(number, path, error, retry_after)

    def broken(self, number: int, path: str = "") -> None:
        """Respond with 500; the call has no effect."""
        self._reject(number, path, ApiError(500, "INTERNAL_ERROR", "An internal error occurred."), None)

    def slow(self, number: int, seconds: float, path: str = "") -> None:
        """Delay the response by this many seconds after the call has taken effect."""
        self._faults.append(Fault("after", number, path, delay_s=seconds))

    def record_call(self, method: str, path: str) -> tuple[int, list[Fault]]:
        """Record a call; return its number, and the faults that apply to it."""
        with self._lock:
            self.calls.append(Call(method, path))
            faults = [fault for fault in self._faults if fault.path in path and fault.number == self._count(fault.path)]
            return len(self.calls), faults

    def apply(self, when: str, number: int, faults: list[Fault]) -> Response | None:
        """Apply the faults of a call before or after it takes effect (`when` is "before" or "after").

        Return the response to send instead of the regular response, or None to send the regular response. Raise
        ConnectionDroppedError if the connection must be dropped.
        """
        if self.on_call is not None:
            self.on_call(number, when)
        for fault in faults:
            if fault.when != when:
                continue
            if fault.response is not None:
                return fault.response
            if not fault.delay_s:
                raise ConnectionDroppedError
            time.sleep(fault.delay_s)
        return None

    def _reject(self, number: int, path: str, error: ApiError, retry_after: int | None) -> None:
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        response = replace(error.response(), headers=headers)
        self._faults.append(Fault("before", number, path, response))

    def _count(self, path: str) -> int:
        return sum(path in call.path for call in self.calls)
