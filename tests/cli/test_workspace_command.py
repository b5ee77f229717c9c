"""`headrace workspace`, as typed: says where it is, serves until Ctrl-C, and is there again the next time."""

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
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as service:
        try:
            yield service
        finally:
            service.kill()


def started(service: subprocess.Popen[str]) -> WorkspaceClient:
    assert service.stdout is not None
    return printed_client(service.stdout)


def test_it_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    for stop in (signal.SIGINT, signal.SIGTERM):
        with serve(tmp_path / "workspace", "-v") as service:
            client = started(service)
            number = create(client, job())
            assert client.jobs.get(number).creator_user_name == "me@example.com"
            service.send_signal(stop)
            told, errors = service.communicate(timeout=60)
        assert "POST /api/2.2/jobs/create 200\n" in told
        assert (service.returncode, errors) == (128 + stop, "Stopped.\n")
    with serve(tmp_path / "workspace") as service:
        assert len(list(started(service).jobs.list())) == 2
        service.send_signal(signal.SIGINT)
        told, _ = service.communicate(timeout=60)
    assert told == ""
