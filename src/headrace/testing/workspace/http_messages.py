"""What goes over the wire: a request as it is handled, its answer, and a refusal in the platform's own form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Document = dict[str, Any]


class ApiError(Exception):
    """A refusal: an HTTP status with the platform's error code and message.

    The code is a name, except for a refused login: there the platform repeats the status.
    """

    def __init__(self, status: int, code: str | int, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message

    def answer(self) -> Answer:
        """The refusal as the client gets it."""
        return Answer.of({"error_code": self.code, "message": self.message}, self.status)


def invalid(message: str) -> ApiError:
    """400: a parameter that cannot be."""
    return ApiError(400, "INVALID_PARAMETER_VALUE", message)


def missing(message: str) -> ApiError:
    """404: a thing that is not there."""
    return ApiError(404, "RESOURCE_DOES_NOT_EXIST", message)


@dataclass(frozen=True)
class Answer:
    """What the client gets: bytes, which are JSON unless said otherwise."""

    status: int = 200
    body: bytes = b"{}"
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, document: Document, status: int = 200) -> Answer:
        """JSON."""
        return cls(status, json.dumps(document).encode())


@dataclass(frozen=True)
class Request:
    """One call of a known user; `rest` is what stands in the path for a name."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    kind: str = ""
    body: bytes = b""
    user: str = ""
    rest: tuple[str, ...] = ()

    def given(self) -> Document:
        """The call's parameters: from the query, and from a body of JSON or of form fields."""
        if not self.body:
            return dict(self.query)
        if self.kind.startswith("multipart/"):
            return {**self.query, **self._form()}
        try:
            document = json.loads(self.body)
        except ValueError as error:
            raise ApiError(400, "MALFORMED_REQUEST", f"Could not parse request object: {error}") from error
        if not isinstance(document, dict):
            raise ApiError(400, "MALFORMED_REQUEST", "Could not parse request object: expected an object")
        return {**self.query, **document}

    def text(self, name: str) -> str:
        """A parameter that must be given."""
        value = self.given().get(name)
        if not isinstance(value, str) or not value:
            raise invalid(f"Missing required field: {name}")
        return value

    def number(self, name: str, otherwise: int | None = None) -> int:
        """A parameter that is a number."""
        value = self.given().get(name, otherwise)
        try:
            return int(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            said = "Missing required field" if value is None else f"Expected a number, got {value!r}"
            raise invalid(f"{said}: {name}") from None

    def flag(self, name: str) -> bool:
        """A parameter that is true or false; false when it is not given."""
        return self.given().get(name) in (True, "true")

    def _form(self) -> Document:
        boundary = re.search(r'boundary="?([^";]+)', self.kind)
        found: Document = {}
        for part in self.body.split(b"--" + boundary[1].encode())[1:-1] if boundary else []:
            head, _, content = part.partition(b"\r\n\r\n")
            name = re.search(rb'name="([^"]*)"', head)
            value = content.removesuffix(b"\r\n")
            if name is not None:  # an uploaded file stays bytes
                found[name[1].decode()] = value if b"filename=" in head else value.decode()
        return found


def page(found: Iterable[Document], request: Request, key: str, *, limit: int, most: int) -> tuple[list[Document], str]:
    """One page of what was found, newest first, and the token of the next page.

    The token is the last id of the page, so that what comes or goes meanwhile moves nobody to another page.
    """
    wanted = request.number("limit", limit)
    if not 0 < wanted <= most:
        raise invalid(f"Invalid limit {wanted}: must be greater than 0 and at most {most}")
    after = request.given().get("page_token")
    if after is not None and not str(after).isdigit():
        raise invalid(f"Invalid page token: {after}")
    left = sorted((one for one in found if after is None or one[key] < int(after)), key=lambda one: -int(one[key]))
    return left[:wanted], str(left[wanted - 1][key]) if len(left) > wanted else ""
