"""Call the REST API of a Databricks workspace. No other module of this package imports databricks.sdk."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from headrace.errors import DeploymentError, SetupError, one_line

if TYPE_CHECKING:
    from databricks.sdk.core import ApiClient

RETRY_TIMEOUT_S = 20  # for a call and its retries; the SDK's default is 300
THROTTLED_TIMEOUT_S = 600  # for a call that the workspace answers with Retry-After
REPEAT = "run the same command again: it continues where this one ended"
RAISE = object()  # default of `missing` in WorkspaceApi.call: raise an error


class ExistsError(Exception):
    """The object that a call should create exists already."""


class UnknownOutcomeError(Exception):
    """A call may or may not have taken effect: the workspace did not answer, or answered that it failed or is busy.

    `call` is the method and the path of the call.
    """

    def __init__(self, call: tuple[str, str], error: Exception) -> None:
        self.call = call
        super().__init__(one_line(error))


class WorkspaceApi:
    """The REST API of one workspace, called as one user."""

    def __init__(self, host: str, profile: str = "") -> None:
        self.retry_timeout = RETRY_TIMEOUT_S
        self._client, self._client_once, self.host = _clients(host, profile)

    def call(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, Any] | None = None,
        body: dict[str, Any] | None = None,
        data: bytes | None = None,
        raw: bool = False,
        once: bool = False,
        missing: Any = RAISE,
    ) -> Any:
        """Make one call and return the response; raise DeploymentError if the call fails.

        With `raw`, the response is not read as JSON: it has a stream of bytes under "contents". If the object does not
        exist and `missing` is given, return `missing`. With `once`, do not retry the call: raise
        ExistsError if the object exists already, and UnknownOutcomeError if the call may have taken effect. Without
        `once`, the SDK retries the call while the workspace does not answer or is busy.
        """
        with _without_services():
            from databricks.sdk import errors
            from databricks.sdk.errors.base import DatabricksError

        client = self._client_once if once else self._client
        call = (method, path)
        # An answer of "too many requests" means that the call had no effect. After others, it may have had one.
        throttled = (errors.TooManyRequests,) if once else (errors.TooManyRequests, errors.TemporarilyUnavailable)
        do = partial(client.do, method, path, query=query, body=body, data=data, raw=raw)
        try:
            return _obey_retry_after(do, throttled)
        except (errors.AlreadyExists, errors.ResourceAlreadyExists) as error:
            if once:
                raise ExistsError from error
            raise self._rejected(*call, error, "rename or move the existing object") from error
        except errors.NotFound as error:
            if missing is not RAISE:
                return missing
            raise self._rejected(*call, error) from error
        except (errors.Unauthenticated, errors.PermissionDenied) as error:
            fix = "log in as a user who has the permission: `databricks auth login`, or set DATABRICKS_TOKEN"
            raise self._rejected(*call, error, fix) from error
        except OSError as error:  # the SDK's own errors are subclasses of OSError too
            # The workspace has rejected the call, unless it did not answer at all or answered with one of these errors.
            busy = (errors.TooManyRequests, errors.InternalError, errors.TemporarilyUnavailable)
            if isinstance(error, DatabricksError) and not isinstance(error, busy):
                raise self._rejected(*call, error, f"correct what the message names, then {REPEAT}") from error
            if once:
                raise UnknownOutcomeError(call, error) from error
            raise self.no_answer(*call, error) from error

    def download(self, path: str) -> bytes | None:
        """Return the bytes that a path serves, or None if the object does not exist."""
        response = self.call("GET", path, raw=True, missing=None)
        if response is None:
            return None
        with response["contents"] as contents:
            content: bytes = contents.read()
            return content

    def _rejected(self, method: str, path: str, error: Exception, fix: str = REPEAT) -> DeploymentError:
        """Return the error for a call that the workspace answered with an error."""
        return DeploymentError(f"the workspace refuses {method} {path}: {one_line(error)}", where=self.host, fix=fix)

    def no_answer(self, method: str, path: str, error: Exception) -> DeploymentError:
        """Return the error for a call that did not succeed within the retry timeout and was not rejected."""
        cause = error.__cause__ if isinstance(error, TimeoutError) and error.__cause__ else error
        return DeploymentError(
            f"the workspace does not answer {method} {path} within {self.retry_timeout} seconds: {one_line(cause)}",
            where=self.host,
            fix=f"check that the workspace can be reached, then {REPEAT}",
        )


def _obey_retry_after(do: Callable[[], Any], throttled: tuple[type[Exception], ...]) -> Any:
    """Make a call again while the workspace has answered with such an error and when to try again.

    The SDK waits as long as the workspace says, but then gives up if its own timeout is over (SDK 0.156). Give up after
    THROTTLED_TIMEOUT_S.
    """
    deadline = time.monotonic() + THROTTLED_TIMEOUT_S
    while True:
        try:
            return do()
        except TimeoutError as error:
            cause = error.__cause__
            is_throttled = isinstance(cause, throttled) and getattr(cause, "retry_after_secs", None) is not None
            if not is_throttled or time.monotonic() > deadline:
                raise


@contextmanager
def _without_services() -> Iterator[None]:
    """Import modules of the SDK during this block without running the __init__ of its package.

    This __init__ imports the clients of all services, which takes 0.5 s (SDK 0.156). Do nothing if the package is
    imported already or is not installed.
    """
    name = "databricks.sdk"
    spec = None if name in sys.modules else find_spec(name)
    if spec is None:
        yield
        return
    package = ModuleType(name)
    package.__path__ = list(spec.submodule_search_locations or ())
    sys.modules[name] = package
    try:
        yield
    finally:
        del sys.modules[name]  # so that a later import outside of this block imports the whole package


def _clients(host: str, profile: str) -> tuple[ApiClient, ApiClient, str]:
    """Return a client, one for calls that must not be repeated, and the host that they call.

    An empty host or profile is replaced by the SDK's default. Raise SetupError if the SDK is not installed, or if it
    finds no credentials for the host.
    """
    try:
        with _without_services():
            from databricks.sdk.core import ApiClient, Config
    except ModuleNotFoundError:
        raise SetupError("databricks-sdk is not installed", fix="pip install 'headrace[deploy]'") from None
    # The SDK logs warnings about a host that does not answer, which the error of the first call reports.
    logging.getLogger("databricks.sdk").addHandler(logging.NullHandler())
    options = {"host": host, "profile": profile}
    try:
        # A timeout of 1 s prevents retries, because the SDK waits longer than that before the first retry. The SDK also
        # asks the host for its metadata, which would take the whole timeout if the host does not answer (SDK 0.156).
        config = Config(
            http_timeout_seconds=min(RETRY_TIMEOUT_S, 10),
            retry_timeout_seconds=1,
            product="headrace",
            **{key: value for key, value in options.items() if value},  # type: ignore[arg-type]
        )
        client_once = ApiClient(config)
        config.retry_timeout_seconds = RETRY_TIMEOUT_S
        return ApiClient(config), client_once, str(config.host)
    except ValueError as error:
        raise SetupError(
            f"there is no login for the workspace: {one_line(error)}",
            where=host,
            fix="log in with `databricks auth login`, or set DATABRICKS_HOST and DATABRICKS_TOKEN",
        ) from error
