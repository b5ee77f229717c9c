"""The workspace as a test or a command has it: started over a directory, stopped with all that it has started."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Self

from headrace.errors import SetupError
from headrace.testing.workspace.dispatcher import Dispatch
from headrace.testing.workspace.faults import Faults
from headrace.testing.workspace.files_api import WorkspaceFiles
from headrace.testing.workspace.http_messages import Document, Request
from headrace.testing.workspace.http_server import Route, Server
from headrace.testing.workspace.jobs_api import Jobs
from headrace.testing.workspace.permissions_api import Permissions
from headrace.testing.workspace.run_tasks import Work
from headrace.testing.workspace.runs_api import Runs
from headrace.testing.workspace.store import Store
from headrace.testing.workspace.task_environment import Places
from headrace.testing.workspace.tokens import Tokens
from headrace.testing.workspace.volumes_api import Volumes

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient

USER = "me"


class LocalWorkspace:
    """A workspace on loopback for the time of a `with` block.

    It accepts `token`, which is random and belongs to the user `me`, and those that `token_for` returns.
    `execute=False` starts no processes: continuous runs stay RUNNING, others succeed at once.
    """

    def __init__(
        self,
        directory: Path,
        port: int = 0,
        execute: bool = True,
        *,
        restart_delay: float = 1.0,
        grace: float = 30.0,
        watch: Callable[[str], None] | None = None,
    ) -> None:
        self.directory = directory.resolve()
        self.faults = Faults()
        self._tokens = Tokens()
        self.token = self._tokens.issue(USER)
        self._port, self._execute, self._delay, self._grace = port, execute, restart_delay, grace
        self._watch = watch
        self._server: Server | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Where it is served."""
        assert self._server is not None, "the workspace is not started"
        return self._server.url

    def token_for(self, user: str) -> str:
        """Return a token with which this user may call; the same one each time, also after a restart."""
        return self._tokens.issue(user)

    def start(self) -> None:
        """Serves the directory; what is in it from an earlier time is there again."""
        self._store = store = Store(self.directory)
        places = Places(store.directory)
        files, volumes = WorkspaceFiles(store), Volumes(store)
        work = Work(places, execute=self._execute, grace=self._grace)
        self._dispatch = dispatch = Dispatch(store, work, restart_delay=self._delay)
        try:
            self._server = Server(self._port, self.faults, self._tokens, files.welcome, self._watch)
        except SetupError:
            store.close()
            raise
        self._port = self._server.server_address[1]  # the same after a restart
        jobs, runs = Jobs(store, dispatch), Runs(store, dispatch, places, self.url)
        self._server.route([*_jobs(jobs, runs), *_files(files, volumes), *_permissions(Permissions(store, files)), ME])
        dispatch.recover()
        self._server.start()

    def stop(self) -> None:
        """Ends the service and all runs, and waits for their processes."""
        if self._server is not None:
            self._server.close()
            self._server = None
            self._dispatch.stop()
            self._store.close()

    def client(self, user: str = USER, *, retry_timeout_seconds: int = 1) -> WorkspaceClient:
        """The official client, which gives up after seconds and not after minutes."""
        from databricks.sdk import WorkspaceClient
        from databricks.sdk.core import Config

        config = Config(
            host=self.url,
            token=self.token_for(user),
            auth_type="pat",
            http_timeout_seconds=10,
            retry_timeout_seconds=retry_timeout_seconds,
        )
        return WorkspaceClient(config=config)


def _jobs(jobs: Jobs, runs: Runs) -> Iterator[Route]:
    table = {
        "POST create": jobs.create,
        "POST reset": jobs.reset,
        "POST delete": jobs.delete,
        "GET get": jobs.get,
        "GET list": jobs.list,
        "POST run-now": runs.run_now,
        "GET runs/get": runs.get,
        "GET runs/list": runs.list,
        "POST runs/cancel": runs.cancel,
        "POST runs/cancel-all": runs.cancel_all,
        "GET runs/get-output": runs.output,
    }
    for name, handle in table.items():
        method, path = name.split()
        yield method, rf"/api/2\.[12]/jobs/{path}", handle


def _files(files: WorkspaceFiles, volumes: Volumes) -> Iterator[Route]:
    workspace, fs = "/api/2.0/workspace", "/api/2.0/fs"
    yield "POST", f"{workspace}/mkdirs", files.mkdirs
    yield "GET", f"{workspace}/get-status", files.get_status
    yield "GET", f"{workspace}/list", files.list
    yield "POST", f"{workspace}/delete", files.delete
    yield "GET", f"{workspace}/export", files.export
    yield "POST", f"{workspace}/import", files.import_
    yield "POST", "/api/2.0/workspace-files/import-file/(.+)", files.import_file
    yield "PUT", f"{fs}/files/(.+)", volumes.upload
    yield "DELETE", f"{fs}/files/(.+)", volumes.delete
    yield "PUT", f"{fs}/directories/(.+)", volumes.make_directory
    yield "DELETE", f"{fs}/directories/(.+)", volumes.delete_directory
    for method in ("GET", "HEAD"):
        yield method, f"{fs}/files/(.+)", volumes.download
        yield method, f"{fs}/directories/(.+)", volumes.list_directory


def _permissions(permissions: Permissions) -> Iterator[Route]:
    for method, handle in (("GET", permissions.get), ("PUT", permissions.replace), ("PATCH", permissions.add)):
        yield method, "/api/2.0/permissions/(jobs|directories)/([^/]+)", handle


def _me(request: Request) -> Document:
    name = request.user
    emails = [{"type": "work", "value": name, "primary": True}]
    return {"id": "1", "userName": name, "displayName": name.split("@")[0], "active": True, "emails": emails}


ME: Route = ("GET", "/api/2.0/preview/scim/v2/Me", _me)
