"""HTTP messages of the workspace: requests, responses, and errors in the platform's own format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Document = dict[str, Any]


class ApiError(Exception):
    """An error response: an HTTP status with the platform's error code and message.

    The code is a name, except after a failed login, where the platform repeats the status.
    """

    def __init__(self, status: int, code: str | int, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message

    def response(self) -> Response:
        """Return the error as the client receives it."""
        return Response.json({"error_code": self.code, "message": self.message}, self.status)


def invalid_parameter(message: str) -> ApiError:
    """Return error 400 for a parameter with an invalid value."""
    return ApiError(400, "INVALID_PARAMETER_VALUE", message)


def does_not_exist(message: str) -> ApiError:
    """Return error 404 for a resource that does not exist."""
    return ApiError(404, "RESOURCE_DOES_NOT_EXIST", message)


@dataclass(frozen=True)
class Response:
    """An HTTP response; its body is JSON unless `content_type` differs."""

    status: int = 200
    body: bytes = b"{}"
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def json(cls, document: Document, status: int = 200) -> Response:
        """Return a response with a document as its body."""
        return cls(status, json.dumps(document).encode())


@dataclass(frozen=True)
class Request:
    """One call. `path_parameters` are the variable parts of the path.

    `user` is the authenticated user; it is empty for a call that was rejected or needs no token.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    content_type: str = ""
    body: bytes = b""
    user: str = ""
    path_parameters: tuple[str, ...] = ()

    def parameters(self) -> Document:
        """Return the parameters of the query and of the body, which is a JSON object or a multipart form."""
        if not self.body:
            return dict(self.query)
        if self.content_type.startswith("multipart/"):
            return {**self.query, **self._form_fields()}
        try:
            document = json.loads(self.body)
        except ValueError as error:
            raise ApiError(400, "MALFORMED_REQUEST", f"Could not parse request object: {error}") from error
        if not isinstance(document, dict):
            raise ApiError(400, "MALFORMED_REQUEST", "Could not parse request object: expected an object")
        return {**self.query, **document}

    def required_text(self, name: str) -> str:
        """Return a parameter; raise ApiError unless it is a non-empty string."""
        value = self.parameters().get(name)
        if not isinstance(value, str) or not value:
            raise invalid_parameter(f"Missing required field: {name}")
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        """Return a parameter as an integer; raise ApiError if it is missing and has no default, or is not a number."""
        value = self.parameters().get(name, default)
        try:
            return int(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            problem = "Missing required field" if value is None else f"Expected a number, got {value!r}"
            raise invalid_parameter(f"{problem}: {name}") from None

    def flag(self, name: str) -> bool:
        """Return whether a parameter is true. A missing parameter is false, and so is one with another value."""
        return self.parameters().get(name) in (True, "true")

    def _form_fields(self) -> Document:
        """Return the fields of a multipart form: text as str, uploaded files as bytes."""
        fields: Document = {}
        boundary = re.search(r'boundary="?([^";]+)', self.content_type)
        if boundary is None:
            return fields
        for part in self.body.split(b"--" + boundary[1].encode())[1:-1]:
            head, _, content = part.partition(b"\r\n\r\n")
            name = re.search(rb'name="([^"]*)"', head)
            value = content.removesuffix(b"\r\n")
            if name is not None:
                fields[name[1].decode()] = value if b"filename=" in head else value.decode()
        return fields


def paginate(
    documents: Iterable[Document], request: Request, id_field: str, *, default_limit: int, max_limit: int
) -> tuple[list[Document], str]:
    """Return one page of documents, newest first, and the token of the next page, or "" on the last page.

    The token is the last id of the returned page, so documents that are created or deleted between two calls do not
    shift the next page.
    """
    limit = request.integer("limit", default_limit)
    if not 0 < limit <= max_limit:
        raise invalid_parameter(f"Invalid limit {limit}: must be greater than 0 and at most {max_limit}")
    token = request.parameters().get("page_token")
    if token is not None and not str(token).isdigit():
        raise invalid_parameter(f"Invalid page token: {token}")
    remaining = sorted(
        (document for document in documents if token is None or document[id_field] < int(token)),
        key=lambda document: -int(document[id_field]),
    )
    page = remaining[:limit]
    has_next_page = len(remaining) > limit
    return page, str(page[-1][id_field]) if has_next_page else ""
