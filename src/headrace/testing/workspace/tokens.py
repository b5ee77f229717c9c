"""Access tokens: which ones this workspace issued, and to which user each belongs."""

from __future__ import annotations

import hmac
import re
import secrets

from headrace.testing.workspace.http_messages import ApiError


class Tokens:
    """Random tokens, one for each user; a workspace accepts no others."""

    def __init__(self) -> None:
        self._issued: dict[str, str] = {}  # user -> token

    def issue(self, name: str) -> str:
        """Return the token of this user, creating it the first time; a name without a domain gets `example.com`."""
        user = re.sub(r"[^\w.@+-]", "-", name)
        user = user if "@" in user else f"{user}@example.com"
        return self._issued.setdefault(user, secrets.token_urlsafe(32))

    def user_of(self, authorization: str) -> str:
        """Return the user whose token an Authorization header holds; raise ApiError for any other header."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise ApiError(401, 401, "Credential was not sent or was of an unsupported type for this API.")
        given = token.strip().encode()
        for user, issued in list(self._issued.items()):  # a copy: another thread may issue a token meanwhile
            if hmac.compare_digest(given, issued.encode()):
                return user
        raise ApiError(403, 403, "Invalid access token.")
