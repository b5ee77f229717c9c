"""Kill the client of a deployment before or after any of its calls, and check the result of repeated commands.

In the scenario "broken lock", the client is not killed, but suspended after a call, until a second client has broken
its lock and deployed another release.

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
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from unittest.mock import patch

from deployments import TinyBundle, serve_tiny, write_tiny
from headrace.release.releases import find
from headrace.testing.workspace import LocalWorkspace

ENVIRONMENT = "staging"
DEPLOY = ("deploy", "--env", ENVIRONMENT)
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
    """A command, the workspace that a case starts with, and a check of the result."""

    name: str
    bundle: Path
    workspace: Path  # copied for each case; an empty workspace if it does not exist
    arguments: tuple[str, ...]
    find_problems: Callable[[LocalWorkspace], list[str]]
    second_bundle: Path | None = None  # of the client that breaks the lock of the first one
    calls: list[str] = field(default_factory=list)  # of the command without a crash

    @property
    def call_count(self) -> int:
        return len(self.calls)


def run_client(arguments: Sequence[str], url: str, token: str) -> None:
    """Run a command, in a process of its own."""
    os.environ.update(DATABRICKS_HOST=url, DATABRICKS_TOKEN=token)
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123
    from headrace.cli import main

    main([*arguments])


def run_command(
    arguments: Sequence[str],
    bundle: Path,
    workspace: LocalWorkspace,
    on_call: Callable[[BaseProcess, int, str], None] = lambda process, number, moment: None,
) -> BaseProcess:
    """Start a command, and call `on_call` before and after each of its calls. Return its process."""
    workspace.faults.reset()
    command = [*arguments, "--yes", "--drain", "0.1", "-C", str(bundle)]
    if arguments[0] != "destroy":
        command += ["--within", "20", "--watch", "0", "--idle", "0"]
    login = (workspace.url, workspace.token_for("alice"))
    process: BaseProcess = FORKS.Process(target=run_client, args=(command, *login))
    workspace.faults.on_call = lambda number, moment: on_call(process, number, moment)
    process.start()
    return process


def exit_code(process: BaseProcess) -> int:
    """Wait for the end of a command, and return its exit code, which is negative if it was killed."""
    process.join(timeout=120)
    assert process.exitcode is not None, "the command does not end"
    return process.exitcode


def run(scenario: Scenario, workspace: LocalWorkspace, crash: Crash | None = None) -> int:
    """Run the command of a scenario, kill it at the crash, and return its exit code."""

    def kill(process: BaseProcess, number: int, moment: str) -> None:
        if Crash(number, moment) == crash:
            _kill(process)

    process = run_command(scenario.arguments, scenario.bundle, workspace, kill)
    if crash is not None and crash.moment == "before":
        workspace.faults.drop_request(crash.number)
    return exit_code(process)


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
def served(directory: Path) -> Iterator[LocalWorkspace]:
    """Serve a workspace, to which this process can connect too."""
    with serve_tiny(directory) as workspace:
        login = {"DATABRICKS_HOST": workspace.url, "DATABRICKS_TOKEN": workspace.token_for("alice")}
        with patch.dict(os.environ, login):
            yield workspace


@contextmanager
def serve_copy(scenario: Scenario) -> Iterator[LocalWorkspace]:
    """Serve a copy of the scenario's workspace."""
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary) / "workspace"
        if scenario.workspace.exists():
            shutil.copytree(scenario.workspace, directory)
        with served(directory) as workspace:
            yield workspace


def prepare_scenarios(directory: Path) -> list[Scenario]:
    """Return the scenarios, each with the calls that its command makes."""
    tiny = TinyBundle(write_tiny(directory / "bundle"))
    releases = [tiny.release().id]
    bundles = [Path(shutil.copytree(tiny.root, directory / "first"))]
    for name in ("second", "third"):
        releases.append(tiny.change().id)
        bundles.append(Path(shutil.copytree(tiny.root, directory / name)))
    started = [directory / "empty", directory / "one release", directory / "two releases"]
    for index in (0, 1):
        if started[index].exists():
            shutil.copytree(started[index], started[index + 1])
        with served(started[index + 1]) as workspace:
            assert exit_code(run_command(DEPLOY, bundles[index], workspace)) == 0

    def deployed(environment: str, index: int, count: int) -> Callable[[LocalWorkspace], list[str]]:
        return lambda workspace: find_problems(workspace, bundles[index], environment, releases[index], count)

    promote = ("promote", "--from", ENVIRONMENT, "--to", "prod", "--gate", "none")
    scenarios = [
        Scenario("first", bundles[0], started[0], DEPLOY, deployed(ENVIRONMENT, 0, 1)),
        Scenario("update", bundles[1], started[1], DEPLOY, deployed(ENVIRONMENT, 1, 2)),
        Scenario("rollback", bundles[1], started[2], ("rollback", "--env", ENVIRONMENT), deployed(ENVIRONMENT, 0, 2)),
        Scenario("promote", bundles[1], started[2], promote, deployed("prod", 1, 1)),
        Scenario("destroy", bundles[1], started[2], ("destroy", "--env", ENVIRONMENT), find_remains),
        Scenario("broken lock", bundles[1], started[1], DEPLOY, deployed(ENVIRONMENT, 2, 3), bundles[2]),
    ]
    for scenario in scenarios:
        with serve_copy(scenario) as workspace:
            assert run(scenario, workspace) == 0, scenario.name
            scenario.calls = [f"{call.method} {call.path}" for call in workspace.faults.calls]
            assert scenario.second_bundle or scenario.find_problems(workspace) == []
    return scenarios


def run_case(scenario: Scenario, first: Crash, second: Crash) -> list[str]:
    """Run one case of a scenario, and return the problems of the result."""
    with serve_copy(scenario) as workspace:
        if scenario.second_bundle:
            return _break_lock(scenario, workspace, first)
        return _kill_twice(scenario, workspace, first, second)


def _kill_twice(scenario: Scenario, workspace: LocalWorkspace, first: Crash, second: Crash) -> list[str]:
    """Kill the command, kill its repetition, repeat it again."""
    for crash in (first, second):
        code = run(scenario, workspace, crash)
        # A command that polls less often than before makes fewer calls. It ends before it would be killed.
        if code not in (-signal.SIGKILL, 0):
            return [f"the exit code of a command that should be killed is {code}"]
        workspace.faults.reset()
        if not is_locked(workspace) and not scenario.find_problems(workspace):  # it was killed after its last call
            return []
    code = run(scenario, workspace)
    return scenario.find_problems(workspace) if code == 0 else [f"the exit code of the repetition is {code}"]


def is_locked(workspace: LocalWorkspace) -> bool:
    """Return whether a command holds the lock of an environment, or was killed while it held it."""
    return any((workspace.directory / "Workspace/Shared/tiny").glob("*/lock.json"))


def _break_lock(scenario: Scenario, workspace: LocalWorkspace, crash: Crash) -> list[str]:
    """Suspend the command after a call, deploy another release with --break-lock, and let the command continue."""
    assert scenario.second_bundle is not None
    suspended = threading.Event()

    def suspend(process: BaseProcess, number: int, moment: str) -> None:
        if (number, moment) == (crash.number, "after") and process.pid:
            os.kill(process.pid, signal.SIGSTOP)
            suspended.set()

    process = run_command(scenario.arguments, scenario.bundle, workspace, suspend)
    while not suspended.wait(0.05) and process.is_alive():
        pass
    second = run_command((*DEPLOY, "--break-lock"), scenario.second_bundle, workspace)
    code = exit_code(second)
    if suspended.is_set() and process.pid:
        os.kill(process.pid, signal.SIGCONT)
    first_code = exit_code(process)
    if code != 0 or first_code not in (0, 1):
        return [f"the exit codes are {first_code} and {code}"]
    # The suspended call and the one that follows it may have changed a job. The plan shows that, and this repairs it.
    code = exit_code(run_command(DEPLOY, scenario.second_bundle, workspace))
    return scenario.find_problems(workspace) if code == 0 else [f"the exit code of the repetition is {code}"]


def find_problems(
    workspace: LocalWorkspace, bundle: Path, environment: str, release: str, release_count: int
) -> list[str]:
    """Return what is wrong in an environment after a finished deployment of a release."""
    tiny = TinyBundle(bundle)
    state = tiny.state(environment)
    if set(state.jobs) != {"live", "nightly"} or not state.history:
        return [f"the deployment is not complete: {state}"]
    plan = tiny.plan(find(bundle, release), environment)
    tags = [str((job.settings.tags or {})["headrace"]) for job in workspace.client().jobs.list() if job.settings]
    problems = []
    if sorted(tag for tag in tags if f"/{environment}/" in tag) != [
        f"tiny/{environment}/live",
        f"tiny/{environment}/nightly",
    ]:
        problems.append(f"jobs: {tags}")
    if not plan.is_empty:
        problems.append(f"the next plan is not empty: {plan.to_json()}")
    if any(job.drift for job in plan.jobs):
        problems.append("the next plan has drift")
    deployed = [entry.release for entry in state.history if entry.outcome == "done"]
    if len(set(deployed)) > release_count or deployed[-1] != release or len(state.history) != len(deployed):
        problems.append(f"history: {state.history}")
    runs = tiny.target(environment).remote.list_runs(state.jobs["live"].id)
    active = [run for run in runs if run.is_active]
    if len(active) != 1 or not active[0].uses(release):
        problems.append(f"active runs: {active}")
    root = workspace.directory / f"Workspace/Shared/tiny/{environment}.headrace"
    if (root / "lock.json").exists():
        problems.append("the lock was not released")
    manifest_file = root / "releases" / release / "manifest.json"
    manifest = json.loads(manifest_file.read_text()) if manifest_file.exists() else {"files": ["manifest.json"]}
    if any(not (root / "releases" / release / path).is_file() for path in manifest["files"]):
        problems.append("the release is incomplete")
    return problems


def find_remains(workspace: LocalWorkspace) -> list[str]:
    """Return what is left of an environment that was destroyed."""
    jobs = [job.job_id for job in workspace.client().jobs.list()]
    root = workspace.directory / f"Workspace/Shared/tiny/{ENVIRONMENT}.headrace"
    return [f"jobs: {jobs}"] * bool(jobs) + [f"files: {list(root.rglob('*'))}"] * root.exists()


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
                        f"{scenario.name}: stopped {first.moment} call {first.number} "
                        f"({scenario.calls[first.number - 1]}), then {second.moment} call {second.number}: {problem}",
                        flush=True,
                    )
                if sys.stdout.isatty():
                    print(f"\r{scenario.name}: {tried} cases", end="", flush=True)
            count = f"{scenario.call_count} calls, {len(chosen)} crashes of {len(crashes)}"
            print(f"{scenario.name}: {count}", flush=True)
    print(f"{tried} cases: {failed} did not converge")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
