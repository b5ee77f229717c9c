"""Jobs, runs and wheels for tests that use a local workspace."""

from __future__ import annotations

import io
import zipfile
from typing import IO, Any

from databricks.sdk import WorkspaceClient
from databricks.sdk.service.jobs import Run

from headrace.testing.workspace import LocalWorkspace
from processes import wait_until

CLUSTER = {"spark_version": "18.x-scala2.13", "node_type_id": "i3.xlarge", "num_workers": 1}
WHEEL = "/Workspace/Shared/tiny-1.0-py3-none-any.whl"


def job(*keys: str, name: str = "orders", **settings: Any) -> dict[str, Any]:
    """Return the definition of a job with one task per key."""
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
    """Return the definition of a continuous job."""
    return job(*keys, continuous={"pause_status": "PAUSED" if paused else "UNPAUSED"}, **settings)


def printed_client(output: IO[str]) -> WorkspaceClient:
    """Return a client with the host and the token that `headrace workspace` printed."""
    lines = [output.readline() for _ in range(5)]
    exports = dict(line.removeprefix("  export ").strip().split("=") for line in lines if "export" in line)
    return WorkspaceClient(host=exports["DATABRICKS_HOST"], token=exports["DATABRICKS_TOKEN"], auth_type="pat")


def create(client: WorkspaceClient, definition: dict[str, Any]) -> int:
    """Create a job and return its id."""
    return int(client.api_client.do("POST", "/api/2.2/jobs/create", body=definition)["job_id"])  # type: ignore[call-overload]


def reset(client: WorkspaceClient, job_id: int, definition: dict[str, Any]) -> None:
    """Replace the definition of a job."""
    client.api_client.do("POST", "/api/2.2/jobs/reset", body={"job_id": job_id, "new_settings": definition})


def start(client: WorkspaceClient, job_id: int, **parameters: Any) -> int:
    """Start a run and return its id."""
    body = {"job_id": job_id, **parameters}
    return int(client.api_client.do("POST", "/api/2.2/jobs/run-now", body=body)["run_id"])  # type: ignore[call-overload]


def state(client: WorkspaceClient, run_id: int) -> str:
    """Return the result of a run that has ended, or else its life-cycle state."""
    run_state = client.jobs.get_run(run_id).state
    assert run_state is not None and run_state.life_cycle_state is not None
    return run_state.result_state.value if run_state.result_state else run_state.life_cycle_state.value


def end_of(client: WorkspaceClient, run_id: int) -> str:
    """Wait for the end of a run and return its result."""
    final_states = ("TERMINATED", "SKIPPED", "INTERNAL_ERROR")

    def has_ended() -> bool:
        run_state = client.jobs.get_run(run_id).state
        life_cycle_state = run_state.life_cycle_state if run_state else None
        return life_cycle_state is not None and life_cycle_state.value in final_states

    wait_until(has_ended, f"the end of run {run_id}")
    return state(client, run_id)


def task_of(run: Run, key: str) -> Any:
    """Return the task of a run by its key."""
    return next(task for task in run.tasks or [] if task.task_key == key)


def tiny_wheel(code: str, *entry_points: str) -> bytes:
    """Return a wheel with one module `tiny` and an entry point for each of these functions of the module."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as wheel:
        wheel.writestr("tiny.py", code)
        wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        lines = "".join(f"{name} = tiny:{name}\n" for name in entry_points)
        wheel.writestr("tiny-1.0.dist-info/entry_points.txt", f"[tiny.jobs]\n{lines}")
    return content.getvalue()


def put_wheel(workspace: LocalWorkspace, code: str, *entry_points: str) -> None:
    """Upload a tiny wheel to the path that the jobs of `job` name."""
    path = f"/api/2.0/workspace-files/import-file{WHEEL}"
    content = tiny_wheel(code, *entry_points)
    workspace.client().api_client.do("POST", path, query={"overwrite": True}, data=content)
