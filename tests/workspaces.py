"""Jobs and wheels for tests against a workspace."""

from __future__ import annotations

import io
import zipfile
from typing import IO, Any

from databricks.sdk import WorkspaceClient
from databricks.sdk.service.jobs import Run

from headrace.testing.workspace import LocalWorkspace
from processes import wait_until

CLUSTER = {"spark_version": "17.3.x-scala2.13", "node_type_id": "i3.xlarge", "num_workers": 1}
WHEEL = "/Workspace/Shared/tiny-1.0-py3-none-any.whl"


def job(*keys: str, name: str = "orders", **settings: Any) -> dict[str, Any]:
    """A job as it is sent, with a task for each key."""
    tasks = [
        {
            "task_key": key,
            "job_cluster_key": "main",
            "libraries": [{"whl": WHEEL}],
            "python_wheel_task": {"package_name": "tiny", "entry_point": key},
        }
        for key in keys or ("only",)
    ]
    clusters = [{"job_cluster_key": "main", "new_cluster": CLUSTER}]
    return {"name": name, "tasks": tasks, "job_clusters": clusters, **settings}


def continuous(*keys: str, paused: bool = False, **settings: Any) -> dict[str, Any]:
    """A job that always runs."""
    return job(*keys, continuous={"pause_status": "PAUSED" if paused else "UNPAUSED"}, **settings)


def printed_client(output: IO[str]) -> WorkspaceClient:
    """Return a client with the host and the token that `headrace workspace` printed."""
    lines = [output.readline() for _ in range(5)]
    exports = dict(line.removeprefix("  export ").strip().split("=") for line in lines if "export" in line)
    return WorkspaceClient(host=exports["DATABRICKS_HOST"], token=exports["DATABRICKS_TOKEN"], auth_type="pat")


def create(client: WorkspaceClient, definition: dict[str, Any]) -> int:
    """Makes the job; its id."""
    return int(client.api_client.do("POST", "/api/2.2/jobs/create", body=definition)["job_id"])  # type: ignore[call-overload]


def reset(client: WorkspaceClient, number: int, definition: dict[str, Any]) -> None:
    """Replaces the job's definition."""
    client.api_client.do("POST", "/api/2.2/jobs/reset", body={"job_id": number, "new_settings": definition})


def start(client: WorkspaceClient, number: int, **given: Any) -> int:
    """Starts a run; its id."""
    return int(client.api_client.do("POST", "/api/2.2/jobs/run-now", body={"job_id": number, **given})["run_id"])  # type: ignore[call-overload]


def state(client: WorkspaceClient, run: int) -> str:
    """The result of a run that has ended, else its life-cycle state."""
    told = client.jobs.get_run(run).state
    assert told is not None and told.life_cycle_state is not None
    return told.result_state.value if told.result_state else told.life_cycle_state.value


def end_of(client: WorkspaceClient, run: int) -> str:
    """Waits for the end of a run; its result."""
    ended = ("TERMINATED", "SKIPPED", "INTERNAL_ERROR")

    def over() -> bool:
        told = client.jobs.get_run(run).state
        return told is not None and told.life_cycle_state is not None and told.life_cycle_state.value in ended

    wait_until(over, f"the end of run {run}")
    return state(client, run)


def task_of(run: Run, key: str) -> Any:
    """A run's task."""
    return next(task for task in run.tasks or [] if task.task_key == key)


def tiny_wheel(code: str, *points: str) -> bytes:
    """A wheel with one module `tiny` and the entry points in a group of its own."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as wheel:
        wheel.writestr("tiny.py", code)
        wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        named = "".join(f"{point} = tiny:{point}\n" for point in points)
        wheel.writestr("tiny-1.0.dist-info/entry_points.txt", f"[tiny.jobs]\n{named}")
    return content.getvalue()


def put_wheel(workspace: LocalWorkspace, code: str, *points: str) -> None:
    """Uploads a tiny wheel to where the jobs of these tests look for it."""
    path = f"/api/2.0/workspace-files/import-file{WHEEL}"
    workspace.client().api_client.do("POST", path, query={"overwrite": True}, data=tiny_wheel(code, *points))
