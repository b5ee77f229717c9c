"""Access tokens of the workspace's users."""

from __future__ import annotations

import hmac
import re
import secrets

from headrace.testing.workspace.http_messages import ApiError


class Tokens:
    """Random tokens, one for each user; the workspace accepts no others."""

    def __init__(self) -> None:
        self._issued: dict[str, str] = {}  # user -> token

    def issue(self, name: str) -> str:
        """Return the user's token, which is created by the first call. A name without a domain gets `example.com`."""
        # The user name becomes the name of a directory, so it must not contain a slash.
        user = re.sub(r"[^\w.@+-]", "-", name)
        user = user if "@" in user else f"{user}@example.com"
        return self._issued.setdefault(user, secrets.token_urlsafe(32))

    def authenticate(self, authorization: str) -> str:
        """Return the user whose token is in an Authorization header; raise ApiError for any other header."""
        # After a failed login, the platform's error code is a number, the status; see ApiError.
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise ApiError(401, 401, "Credential was not sent or was of an unsupported type for this API.")
        given = token.strip().encode()
        for user, issued in list(self._issued.items()):  # a copy: another thread may issue a token at the same time
            if hmac.compare_digest(given, issued.encode()):
                return user
        raise ApiError(403, 403, "Invalid access token.")
