"""Kill the client of a deployment before or after any of its calls, and check the result of repeated deployments.

`python -m crashes` tries every call, `python -m crashes --sample 10 --seed 1` a sample.
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

from deployments import TinyBundle, serve_tiny, write_tiny
from headrace.testing.workspace import LocalWorkspace

ENVIRONMENT = "staging"
MOMENTS = ("before", "after")
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["headrace.cli.deploy_commands", "headrace.deploy.apply", "headrace.deploy.planner", "databricks.sdk"]
)


@dataclass(frozen=True)
class Crash:
    """The client is killed before the workspace executes its n-th call, or after."""

    number: int
    moment: str


@dataclass
class Scenario:
    """A bundle and the workspace that a case starts with: empty, or with a release whose jobs run."""

    name: str
    bundle: Path
    workspace: Path
    calls: list[str] = field(default_factory=list)  # of a deployment without a crash

    @property
    def call_count(self) -> int:
        return len(self.calls)


def run_client(root: str, url: str, token: str) -> None:
    """Run `headrace deploy --yes`, in a process of its own."""
    os.environ.update(DATABRICKS_HOST=url, DATABRICKS_TOKEN=token)
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123
    from headrace.cli import main

    main(["deploy", "--env", ENVIRONMENT, "--yes", "--drain", "0.1", "--within", "20", "--watch", "0", "-C", root])


def deploy(bundle: Path, workspace: LocalWorkspace, crash: Crash | None = None) -> int | None:
    """Run the client and return its exit code, which is negative if it was killed."""
    workspace.faults.reset()
    login = (workspace.url, workspace.token_for("alice"))
    process: BaseProcess = FORKS.Process(target=run_client, args=(str(bundle), *login))
    if crash is not None:
        if crash.moment == "before":
            workspace.faults.drop_request(crash.number)
        workspace.faults.on_call = lambda number, moment: _kill(process) if Crash(number, moment) == crash else None
    process.start()
    process.join(timeout=120)
    assert process.exitcode is not None, "the deployment does not end"
    return process.exitcode


def _kill(process: BaseProcess) -> None:
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while _exists(process.pid):  # a killed process exists until its parent has reaped it
        assert time.monotonic() < deadline, "the client does not end"
        time.sleep(0.005)


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def serve_copy(scenario: Scenario) -> Iterator[LocalWorkspace]:
    """Serve a copy of the scenario's workspace."""
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary) / "workspace"
        if scenario.workspace.exists():
            shutil.copytree(scenario.workspace, directory)
        with serve_tiny(directory) as workspace:
            login = {"DATABRICKS_HOST": workspace.url, "DATABRICKS_TOKEN": workspace.token_for("alice")}
            with patch.dict(os.environ, login):
                yield workspace


def prepare_scenarios(directory: Path) -> list[Scenario]:
    """Return a first deployment and an update of a running stream, each with the calls that it makes."""
    bundle = write_tiny(directory / "bundle")
    tiny = TinyBundle(bundle)
    tiny.release()
    first = Scenario("first", Path(shutil.copytree(bundle, directory / "first")), directory / "empty")
    update = Scenario("update", bundle, directory / "running")
    with serve_tiny(update.workspace) as workspace:
        assert deploy(bundle, workspace) == 0
    tiny.change()
    for scenario in (first, update):
        with serve_copy(scenario) as workspace:
            assert deploy(scenario.bundle, workspace) == 0
            scenario.calls = [f"{call.method} {call.path}" for call in workspace.faults.calls]
            assert find_problems(scenario, workspace) == []
    return [first, update]


def run_case(scenario: Scenario, first: Crash, second: Crash) -> list[str]:
    """Kill a deployment, kill its repetition, repeat it again; return the problems of the result."""
    with serve_copy(scenario) as workspace:
        codes = [deploy(scenario.bundle, workspace, first), deploy(scenario.bundle, workspace, second)]
        if codes[0] != -signal.SIGKILL:
            return [f"the client was not killed; its exit code is {codes[0]}"]
        code = deploy(scenario.bundle, workspace)
        if code != 0:
            return [f"the exit code of the repetition is {code}"]
        return find_problems(scenario, workspace)


def find_problems(scenario: Scenario, workspace: LocalWorkspace) -> list[str]:
    """Return what is wrong in the workspace after a finished deployment."""
    tiny = TinyBundle(scenario.bundle)
    release, state, plan = tiny.release(), tiny.state(ENVIRONMENT), tiny.plan(environment=ENVIRONMENT)
    tags = [job.settings.tags for job in workspace.client().jobs.list() if job.settings]
    problems = []
    if sorted(str(tag and tag["headrace"]) for tag in tags) != ["tiny/staging/live", "tiny/staging/nightly"]:
        problems.append(f"jobs: {tags}")
    if not plan.is_empty:
        problems.append(f"the next plan is not empty: {plan.to_json()}")
    if any(job.drift for job in plan.jobs):
        problems.append("the next plan has drift")
    deployed = [entry.release for entry in state.history if entry.outcome == "done"]
    expected = 2 if scenario.name == "update" else 1
    if len(dict.fromkeys(deployed)) != expected or deployed[-1] != release.id or len(state.history) != len(deployed):
        problems.append(f"history: {state.history}")
    runs = tiny.target(ENVIRONMENT).remote.list_runs(state.jobs["live"].id)
    active = [run for run in runs if run.is_active]
    if len(active) != 1 or not active[0].uses(release.id):
        problems.append(f"active runs: {active}")
    root = workspace.directory / "Workspace/Shared/tiny/staging"
    if (root / "lock.json").exists():
        problems.append("the lock was not released")
    manifest = json.loads((root / "releases" / release.id / "manifest.json").read_text())
    if any(not (root / "releases" / release.id / path).is_file() for path in manifest["files"]):
        problems.append("the release is incomplete")
    return problems


def main() -> int:
    """Run all cases or a sample of them, and print the failures and the number of cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, metavar="N", help="run only N cases of each scenario")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    failed = tried = 0
    with tempfile.TemporaryDirectory() as directory:
        for scenario in prepare_scenarios(Path(directory)):
            crashes = [Crash(number, moment) for number in range(1, scenario.call_count + 1) for moment in MOMENTS]
            chosen = crashes if options.sample is None else rng.sample(crashes, options.sample)
            for first in chosen:
                second = rng.choice(crashes)
                problems = run_case(scenario, first, second)
                tried += 1
                failed += bool(problems)
                for problem in problems:
                    print(
                        f"{scenario.name}: killed {first.moment} call {first.number} "
                        f"({scenario.calls[first.number - 1]}), then {second.moment} call {second.number}: {problem}",
                        flush=True,
                    )
                if sys.stdout.isatty():
                    print(f"\r{scenario.name}: {tried} cases", end="", flush=True)
            count = f"{scenario.call_count} calls, {len(chosen)} crashes of {len(crashes)}"
            print(f"{scenario.name}: {count}", flush=True)
    print(f"{tried} cases, each killed twice and repeated: {failed} did not converge")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
