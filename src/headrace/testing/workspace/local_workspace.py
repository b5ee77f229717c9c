"""The local workspace, for tests and `headrace workspace`: a server that stores files and jobs, and runs the jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Self

from headrace.errors import SetupError
from headrace.testing.workspace.dispatcher import Dispatcher
from headrace.testing.workspace.faults import Faults
from headrace.testing.workspace.files_api import WorkspaceFiles
from headrace.testing.workspace.http_messages import Document, Request
from headrace.testing.workspace.http_server import Route, Server
from headrace.testing.workspace.jobs_api import Jobs
from headrace.testing.workspace.permissions_api import Permissions
from headrace.testing.workspace.run_tasks import TaskRunner
from headrace.testing.workspace.runs_api import Runs
from headrace.testing.workspace.store import Store
from headrace.testing.workspace.task_environment import TaskEnvironment
from headrace.testing.workspace.tokens import Tokens
from headrace.testing.workspace.volumes_api import Volumes

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient

    from headrace.testing.workspace.job_run import Run

USER = "me"


class LocalWorkspace:
    """A workspace on 127.0.0.1, served inside a `with` block or between `start` and `stop`.

    The workspace accepts `token`, which is random and belongs to the user `me`, and the tokens that `token_for`
    returns. Port 0 selects a free port. With `execute=False`, no processes are started: runs of continuous jobs stay
    RUNNING, and all other runs succeed at once; `simulate`, if given, is called with each run that is started, to write
    what the run would write. `restart_delay` is the number of seconds before a continuous job runs
    again; it doubles with each further failure in a row. `grace` is the number of seconds that a cancelled task has to
    end. `watch`, if given, is called with one line of text for each API call.
    """

    def __init__(
        self,
        directory: Path,
        port: int = 0,
        execute: bool = True,
        *,
        restart_delay: float = 1.0,
        grace: float = 30.0,
        simulate: Callable[[Run], None] | None = None,
        watch: Callable[[str], None] | None = None,
    ) -> None:
        self.directory = directory.resolve()
        self.faults = Faults()
        self._tokens = Tokens()
        self.token = self._tokens.issue(USER)
        self._port, self._execute, self._restart_delay, self._grace = port, execute, restart_delay, grace
        self._simulate, self._watch = simulate, watch
        self._server: Server | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The URL of the workspace, while it is started."""
        assert self._server is not None, "the workspace is not started"
        return self._server.url

    def token_for(self, user: str) -> str:
        """Return the access token of a user, which is the same until this object is deleted."""
        return self._tokens.issue(user)

    def start(self) -> None:
        """Start serving the directory, with the files, jobs and runs that an earlier workspace has stored in it.

        Runs that were active when the earlier workspace died are ended, and continuous jobs run again.
        """
        self._store = store = Store(self.directory)
        environment = TaskEnvironment(store.directory)
        files, volumes = WorkspaceFiles(store), Volumes(store)
        task_runner = TaskRunner(environment, execute=self._execute, grace_s=self._grace, simulate=self._simulate)
        self._dispatcher = dispatcher = Dispatcher(store, task_runner, restart_delay_s=self._restart_delay)
        try:
            self._server = Server(self._port, self.faults, self._tokens, files.create_home, self._watch)
        except SetupError:
            store.close()
            raise
        self._port = self._server.server_address[1]  # a restart uses the same port
        jobs, runs = Jobs(store, dispatcher), Runs(store, dispatcher, environment, self.url)
        permissions = Permissions(store, files)
        self._server.set_routes(
            [
                *_job_routes(jobs, runs),
                *_file_routes(files, volumes),
                *_permission_routes(permissions),
                CURRENT_USER_ROUTE,
            ]
        )
        dispatcher.recover()
        self._server.start()

    def stop(self) -> None:
        """Stop serving, end all runs, and wait for their processes."""
        if self._server is not None:
            self._server.close()
            self._server = None
            self._dispatcher.stop()
            self._store.close()

    def client(self, user: str = USER, *, retry_timeout_seconds: int = 1) -> WorkspaceClient:
        """Return a client of the Databricks SDK for a user, with timeouts of seconds instead of minutes."""
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


def _job_routes(jobs: Jobs, runs: Runs) -> Iterator[Route]:
    endpoints = {
        "POST create": jobs.create,
        "POST reset": jobs.reset,
        "POST delete": jobs.delete,
        "GET get": jobs.get,
        "GET list": jobs.list,
        "POST run-now": runs.run_now,
        "POST runs/submit": runs.submit,
        "GET runs/get": runs.get,
        "GET runs/list": runs.list,
        "POST runs/cancel": runs.cancel,
        "POST runs/cancel-all": runs.cancel_all,
        "GET runs/get-output": runs.get_output,
    }
    for call, endpoint in endpoints.items():
        method, path = call.split()
        yield method, rf"/api/2\.[12]/jobs/{path}", endpoint


def _file_routes(files: WorkspaceFiles, volumes: Volumes) -> Iterator[Route]:
    workspace, fs = "/api/2.0/workspace", "/api/2.0/fs"
    yield "POST", f"{workspace}/mkdirs", files.mkdirs
    yield "GET", f"{workspace}/get-status", files.get_status
    yield "GET", f"{workspace}/list", files.list
    yield "POST", f"{workspace}/delete", files.delete
    yield "GET", f"{workspace}/export", files.export
    yield "POST", f"{workspace}/import", files.import_
    yield "POST", "/api/2.0/workspace-files/import-file/(.+)", files.import_file
    yield "GET", "/api/2.0/workspace-files/(.+)", files.download
    yield "PUT", f"{fs}/files/(.+)", volumes.upload
    yield "DELETE", f"{fs}/files/(.+)", volumes.delete
    yield "PUT", f"{fs}/directories/(.+)", volumes.create_directory
    yield "DELETE", f"{fs}/directories/(.+)", volumes.delete_directory
    for method in ("GET", "HEAD"):
        yield method, f"{fs}/files/(.+)", volumes.download
        yield method, f"{fs}/directories/(.+)", volumes.list_directory


def _permission_routes(permissions: Permissions) -> Iterator[Route]:
    path = "/api/2.0/permissions/(jobs|directories)/([^/]+)"
    yield "GET", path, permissions.get
    yield "PUT", path, permissions.replace
    yield "PATCH", path, permissions.update


def _current_user(request: Request) -> Document:
    name = request.user
    emails = [{"type": "work", "value": name, "primary": True}]
    return {"id": "1", "userName": name, "displayName": name.split("@")[0], "active": True, "emails": emails}


CURRENT_USER_ROUTE: Route = ("GET", "/api/2.0/preview/scim/v2/Me", _current_user)
