"""`headrace workspace` as a command: it prints its URL, serves until Ctrl-C, and keeps its content."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from databricks.sdk import WorkspaceClient

from workspaces import create, job, printed_client


@contextmanager
def serve(directory: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "headrace", "workspace", "--directory", str(directory), "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def connect(process: subprocess.Popen[str]) -> WorkspaceClient:
    assert process.stdout is not None
    return printed_client(process.stdout)


def test_workspace_serves_until_it_is_stopped(tmp_path: Path) -> None:
    for stop_signal in (signal.SIGINT, signal.SIGTERM):
        with serve(tmp_path / "workspace", "-v") as process:
            client = connect(process)
            number = create(client, job())
            assert client.jobs.get(number).creator_user_name == "me@example.com"
            process.send_signal(stop_signal)
            output, errors = process.communicate(timeout=60)
        assert "POST /api/2.2/jobs/create 200\n" in output
        assert (process.returncode, errors) == (128 + stop_signal, "Stopped.\n")
    with serve(tmp_path / "workspace") as process:
        assert len(list(connect(process).jobs.list())) == 2
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert output == ""
