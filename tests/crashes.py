"""Deployments whose client is killed, before or after any of its calls; and what must be true after they were repeated.

`python -m crashes` tries every call, `python -m crashes --sample 10 --seed 1` some of them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from unittest.mock import patch

from deployments import Tiny, write_tiny
from headrace.testing.workspace import LocalWorkspace

ENVIRONMENT = "staging"
WHENS = ("before", "after")
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["headrace.cli.deploy_commands", "headrace.deploy.apply", "headrace.deploy.planner", "databricks.sdk"]
)


@dataclass(frozen=True)
class Crash:
    """The client dies at its n-th call: before the workspace carries it out, or after."""

    number: int
    when: str


@dataclass
class Ground:
    """A workspace in which a case begins: empty, or with a release whose jobs run."""

    name: str
    bundle: Path
    workspace: Path
    calls: int = 0
    after: list[str] = field(default_factory=list)  # the calls of a deployment that nothing happens to


def client(root: str, url: str, token: str) -> None:
    """What `headrace deploy --yes` does, in a process of its own."""
    os.environ.update(DATABRICKS_HOST=url, DATABRICKS_TOKEN=token)
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123
    from headrace.cli import main

    main(["deploy", "--env", ENVIRONMENT, "--yes", "--drain", "0.1", "--within", "20", "-C", root])


def deploy(bundle: Path, workspace: LocalWorkspace, crash: Crash | None = None) -> int | None:
    """Runs the client; its exit code, negative when it was killed."""
    workspace.faults.reset()
    login = (workspace.url, workspace.token_for("alice"))
    process: BaseProcess = FORKS.Process(target=client, args=(str(bundle), *login))
    if crash is not None:
        if crash.when == "before":
            workspace.faults.drop_request(crash.number)
        workspace.faults.on_call = lambda number, when: _kill(process) if Crash(number, when) == crash else None
    process.start()
    process.join(timeout=120)
    assert process.exitcode is not None, "the deployment hangs"
    return process.exitcode


def _kill(process: BaseProcess) -> None:
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    until = time.monotonic() + 10
    while _is_there(process.pid):  # until its parent has taken leave of it
        assert time.monotonic() < until, "the client does not die"
        time.sleep(0.005)


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def served(ground: Ground) -> Iterator[LocalWorkspace]:
    """The ground's workspace, in a copy."""
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place) / "workspace"
        if ground.workspace.exists():
            shutil.copytree(ground.workspace, directory)
        with LocalWorkspace(directory, execute=False, restart_delay=0.01) as workspace:
            known = {"DATABRICKS_HOST": workspace.url, "DATABRICKS_TOKEN": workspace.token_for("alice")}
            with patch.dict(os.environ, known):
                yield workspace


def grounds(place: Path) -> list[Ground]:
    """A first deployment, and one onto a stream that runs; each with its calls counted."""
    bundle = write_tiny(place / "bundle")
    tiny = Tiny(bundle)
    tiny.release()
    first = Ground("first", Path(shutil.copytree(bundle, place / "first")), place / "empty")
    update = Ground("update", bundle, place / "running")
    with LocalWorkspace(update.workspace, execute=False, restart_delay=0.01) as workspace:
        assert deploy(bundle, workspace) == 0
    tiny.change()
    for ground in (first, update):
        with served(ground) as workspace:
            assert deploy(ground.bundle, workspace) == 0
            ground.after = [f"{call.method} {call.path}" for call in workspace.faults.calls]
            ground.calls = len(ground.after)
            assert problems(ground, workspace) == []
    return [first, update]


def case(ground: Ground, crash: Crash, again: Crash) -> list[str]:
    """A crash, a crash of the repetition, a repetition to the end; what is not as it must be."""
    with served(ground) as workspace:
        codes = [deploy(ground.bundle, workspace, crash), deploy(ground.bundle, workspace, again)]
        if codes[0] != -signal.SIGKILL:
            return [f"the client was not killed, but ended with {codes[0]}"]
        code = deploy(ground.bundle, workspace)
        if code != 0:
            return [f"the repetition ended with {code}"]
        return problems(ground, workspace)


def problems(ground: Ground, workspace: LocalWorkspace) -> list[str]:
    """What is not as it must be, once a deployment has come to its end."""
    tiny = Tiny(ground.bundle)
    release, state, plan = tiny.release(), tiny.state(ENVIRONMENT), tiny.plan(environment=ENVIRONMENT)
    jobs = [job.settings.tags for job in workspace.client().jobs.list() if job.settings]
    found = []
    if sorted(str(tags and tags["headrace"]) for tags in jobs) != ["tiny/staging/live", "tiny/staging/nightly"]:
        found.append(f"jobs: {jobs}")
    if not plan.is_empty:
        found.append(f"the second plan is not empty: {plan.text()}")
    if any(job.drift for job in plan.jobs):
        found.append("drift")
    done = [entry.release for entry in state.history if entry.ended == "done"]
    wanted = 2 if ground.name == "update" else 1
    if len(dict.fromkeys(done)) != wanted or done[-1] != release.id or len(state.history) != len(done):
        found.append(f"history: {state.history}")
    runs = [run for run in tiny.place(ENVIRONMENT).remote.runs(state.jobs["live"].id) if run.is_active]
    if len(runs) != 1 or not runs[0].uses(release.id):
        found.append(f"runs that go on: {runs}")
    root = workspace.directory / "Workspace/Shared/tiny/staging"
    if (root / "lock.json").exists():
        found.append("the lock is still there")
    manifest = json.loads((root / "releases" / release.id / "manifest.json").read_text())
    if any(not (root / "releases" / release.id / path).is_file() for path in manifest["files"]):
        found.append("the release is not whole")
    return found


def main() -> int:
    """All cases, or a sample of them; prints what was tried."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, metavar="N", help="only so many cases of each ground")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    failed = tried = 0
    with tempfile.TemporaryDirectory() as place:
        for ground in grounds(Path(place)):
            crashes = [Crash(number, when) for number in range(1, ground.calls + 1) for when in WHENS]
            chosen = crashes if given.sample is None else rng.sample(crashes, given.sample)
            for crash in chosen:
                again = rng.choice(crashes)
                found = case(ground, crash, again)
                tried += 1
                failed += bool(found)
                for problem in found:
                    print(
                        f"{ground.name}: killed {crash.when} call {crash.number} ({ground.after[crash.number - 1]}), "
                        f"then {again.when} call {again.number}: {problem}",
                        flush=True,
                    )
                if sys.stdout.isatty():
                    print(f"\r{ground.name}: {tried} cases", end="", flush=True)
            print(f"{ground.name}: {ground.calls} calls, {len(chosen)} crashes of {len(crashes)}", flush=True)
    print(f"{tried} cases, each killed twice and repeated: {failed} did not converge")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
