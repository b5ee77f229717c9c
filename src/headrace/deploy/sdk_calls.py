"""Calls of a Databricks workspace, its errors as ours: the only module of deployments that knows databricks.sdk."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from headrace.errors import DeploymentError, SetupError, one_line

if TYPE_CHECKING:
    from databricks.sdk.core import ApiClient

PATIENCE = 20  # seconds for a call and its repetitions; the SDK's own are 300
AGAIN = "run the same command again: it goes on where this one ended"


class ThereError(Exception):
    """What was to be new is there already."""


class UnsureError(Exception):
    """Nobody knows whether the call was carried out."""

    def __init__(self, call: tuple[str, str], error: Exception) -> None:
        self.call = call
        super().__init__(one_line(error))


class Calls:
    """The calls of one user."""

    def __init__(self, host: str, profile: str = "") -> None:
        self.patience = PATIENCE
        self._client, self.host = _client(host, profile, PATIENCE)
        # What must not happen twice is not repeated: the SDK begins again only before this is over.
        self._client_once, _ = _client(host, profile, 1)

    def do(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, Any] | None = None,
        body: dict[str, Any] | None = None,
        data: bytes | None = None,
        once: bool = False,
        **otherwise: Any,
    ) -> Any:
        """One call; `missing` is the answer when the thing is not there, `once` that it is not repeated."""
        with _without_services():
            from databricks.sdk import errors
            from databricks.sdk.errors.base import DatabricksError

        client = self._client_once if once else self._client
        call = (method, path)
        try:
            return client.do(method, path, query=query, body=body, data=data)
        except (errors.AlreadyExists, errors.ResourceAlreadyExists) as error:
            if once:
                raise ThereError from error
            raise self._refused(*call, error, "move away what is there") from error
        except errors.NotFound as error:
            if "missing" in otherwise:
                return otherwise["missing"]
            raise self._refused(*call, error) from error
        except (errors.Unauthenticated, errors.PermissionDenied) as error:
            raise self._refused(
                *call, error, "log in as somebody who may: `databricks auth login`, or DATABRICKS_TOKEN"
            ) from error
        except OSError as error:  # the platform's own errors are of that kind too
            busy = (errors.TooManyRequests, errors.InternalError, errors.TemporarilyUnavailable)
            if isinstance(error, DatabricksError) and not isinstance(error, busy):
                raise self._refused(*call, error, f"mend what it names, and {AGAIN}") from error
            if once:
                raise UnsureError(call, error) from error
            raise self.silent(*call, error) from error

    def _refused(self, method: str, path: str, error: Exception, fix: str = AGAIN) -> DeploymentError:
        return DeploymentError(f"the workspace refuses {method} {path}: {one_line(error)}", where=self.host, fix=fix)

    def silent(self, method: str, path: str, error: Exception) -> DeploymentError:
        return DeploymentError(
            f"the workspace does not answer {method} {path}, tried for {self.patience} seconds: {one_line(error)}",
            where=self.host,
            fix=f"see that it can be reached, and {AGAIN}",
        )


@contextmanager
def _without_services() -> Iterator[None]:
    """Imports of the SDK's core alone: its package first imports all services of the platform, 0.5 s (0.156)."""
    name = "databricks.sdk"
    found = None if name in sys.modules else find_spec(name)
    if found is None:
        yield
        return
    package = ModuleType(name)
    package.__path__ = list(found.submodule_search_locations or ())
    sys.modules[name] = package
    try:
        yield
    finally:
        del sys.modules[name]  # whoever wants the whole of it imports it as ever


def _client(host: str, profile: str, patience: int) -> tuple[ApiClient, str]:
    """A client, and the host that it calls."""
    try:
        with _without_services():
            from databricks.sdk.core import ApiClient, Config
    except ModuleNotFoundError:
        raise SetupError("databricks-sdk is not installed", fix="pip install 'headrace[deploy]'") from None
    given = {"host": host, "profile": profile}
    try:
        config = Config(
            http_timeout_seconds=min(PATIENCE, 10),
            retry_timeout_seconds=patience,
            product="headrace",
            **{key: value for key, value in given.items() if value},  # type: ignore[arg-type]
        )
        return ApiClient(config), str(config.host)
    except ValueError as error:
        raise SetupError(
            f"there is no login for the workspace: {one_line(error)}",
            where=host,
            fix="log in with `databricks auth login`, or give DATABRICKS_HOST and DATABRICKS_TOKEN",
        ) from error
