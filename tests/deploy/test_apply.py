"""Deployments: what is made, changed, restarted and taken back in a workspace."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from deployments import DATABRICKS, LIVE, PROMPT
from headrace.deploy import databricks_workspace as workspace_module
from headrace.deploy import upload
from headrace.deploy.apply import Order, apply
from headrace.deploy.databricks_workspace import Workspace
from headrace.deploy.deploy_state import Entry, Intent, State, paused
from headrace.deploy.deployed_jobs import destroy, start, stop
from headrace.deploy.drain import Limits, drain, running
from headrace.deploy.release_history import earlier
from headrace.deploy.remote import Run
from headrace.deploy.state_store import Ledger
from headrace.errors import DeploymentError
from workspaces import reset


def settings(client, state, key):
    return client.api_client.do("GET", "/api/2.2/jobs/get", query={"job_id": state.jobs[key].id})["settings"]


def runs(client, state, key, **query):
    told = client.api_client.do(
        "GET", "/api/2.2/jobs/runs/list", query={"job_id": state.jobs[key].id, "expand_tasks": True, **query}
    )
    return told.get("runs", [])


def release_of(run):
    return {
        library["whl"].split("/releases/")[1].split("/")[0]
        for library in run["tasks"][0]["libraries"]
        if "whl" in library
    }


def test_a_first_deployment_lays_the_release_down_and_makes_the_jobs(tiny, workspace, client):
    built = tiny.release()
    state = tiny.deploy()
    laid = workspace.directory / "Workspace/Shared/tiny/staging/releases" / built.id
    assert {path: (laid / path).read_bytes() for path in built.manifest.files} == {
        path: (built.directory / path).read_bytes() for path in built.manifest.files
    }
    live = settings(client, state, "live")
    assert live["continuous"]["pause_status"] == "UNPAUSED"
    assert live["max_concurrent_runs"] == 1
    assert live["tags"] == {"headrace": "tiny/staging/live"}
    (task,) = live["tasks"]
    directory = f"/Workspace/Shared/tiny/staging/releases/{built.id}"
    assert task["libraries"] == [
        {"requirements": f"{directory}/requirements.txt"},
        {"whl": f"{directory}/{built.manifest.wheels[0]}"},
    ]
    assert task["python_wheel_task"]["named_parameters"] == {
        "pipeline": "p",
        "env": "staging",
        "conf": f"{directory}/conf",
        "value": "user=everybody",
    }
    (run,) = runs(client, state, "live", active_only=True)
    assert (run["state"]["life_cycle_state"], release_of(run)) == ("RUNNING", {built.id})
    assert settings(client, state, "nightly")["schedule"]["pause_status"] == "UNPAUSED"
    assert runs(client, state, "nightly") == []
    (entry,) = state.history
    assert (entry.what, entry.release, entry.by, entry.ended, entry.dirty) == (
        "deploy",
        built.id,
        "alice@example.com",
        "done",
        False,
    )
    assert tiny.plan().is_empty
    assert not (laid.parents[1] / "lock.json").exists()


def test_a_new_release_replaces_the_run_that_goes_on(tiny, client):
    tiny.deploy()
    changed = tiny.change()
    made = tiny.plan(changed)
    assert {job.key: (job.action, job.restarts) for job in made.jobs} == {
        "live": ("update", True),
        "nightly": ("update", False),
    }
    state = tiny.deploy(changed)
    last, first = runs(client, state, "live")
    assert first["state"]["result_state"] == "CANCELED"
    assert (last["state"]["life_cycle_state"], release_of(last)) == ("RUNNING", {changed.id})
    assert [entry.release for entry in state.history] == [made.before, changed.id]
    assert tiny.plan(changed).is_empty


def test_a_run_of_another_release_is_not_the_new_one(tiny):
    state = tiny.deploy()
    live = state.jobs["live"].id
    assert running(live, tiny.release().id, (), tiny.place(), 60) == ""
    assert running(live, tiny.change().id, (), tiny.place(), 1) == "no run of it was running within 1 seconds"


def test_what_somebody_changed_by_hand_is_told_apart_and_put_back(tiny, client):
    state = tiny.deploy()
    theirs = settings(client, state, "live")
    reset(client, state.jobs["live"].id, {**theirs, "timeout_seconds": 60, "continuous": {"pause_status": "PAUSED"}})
    (live, nightly) = tiny.plan().jobs
    assert [(change.path, change.old, change.new) for change in live.drift] == [
        ("continuous.pause_status", "UNPAUSED", "PAUSED"),
        ("timeout_seconds", 0, 60),
    ]
    assert (live.changes, nightly.action) == ((), "unchanged")
    tiny.deploy()
    assert settings(client, state, "live") == theirs
    assert tiny.plan().is_empty


def test_a_job_that_was_deleted_by_hand_is_made_again(tiny, client):
    state = tiny.deploy()
    client.jobs.delete(state.jobs["nightly"].id)
    (_, nightly) = tiny.plan().jobs
    assert (nightly.action, nightly.drift[0].path) == ("create", "job")
    again = tiny.deploy()
    assert again.jobs["nightly"].id != state.jobs["nightly"].id
    assert tiny.plan().is_empty


def test_a_job_that_the_release_no_longer_has_is_deleted(tiny, client):
    state = tiny.deploy()
    changed = tiny.change(**{"resources/nightly.job.yml": None})
    assert [(job.key, job.action) for job in tiny.plan(changed).jobs] == [("live", "update"), ("nightly", "delete")]
    assert set(tiny.deploy(changed).jobs) == {"live"}
    assert [job.job_id for job in client.jobs.list()] == [state.jobs["live"].id]
    assert tiny.plan(changed).is_empty


def test_a_run_that_does_not_begin_takes_the_job_back(tiny, workspace, client, monkeypatch):
    before = tiny.deploy()
    changed = tiny.change()
    work = type(workspace._dispatch._work)
    carried = work.__call__

    def fail(self, run, event, keep):
        if any(changed.id in library.get("whl", "") for library in run.settings["tasks"][0]["libraries"]):
            raise OSError("no such wheel")
        carried(self, run, event, keep)

    monkeypatch.setattr(work, "__call__", fail)
    with pytest.raises(DeploymentError, match=r"(?s)job 'live' does not run with release .*no such wheel.*as it was"):
        tiny.deploy(changed)
    state = tiny.state()
    assert (state.release, state.jobs["live"].release) == (before.release, before.release)
    assert state.history[-1].ended.startswith("job 'live' does not run")
    (run,) = runs(client, state, "live", active_only=True)
    assert release_of(run) == {before.release}
    monkeypatch.setattr(work, "__call__", carried)
    tiny.deploy(changed)
    assert tiny.plan(changed).is_empty


def test_a_new_job_whose_run_does_not_begin_is_left_paused(tiny, workspace, client, monkeypatch):
    def fail(self, run, event, keep):
        raise OSError("no such wheel")

    monkeypatch.setattr(type(workspace._dispatch._work), "__call__", fail)
    with pytest.raises(DeploymentError, match="left paused"):
        tiny.deploy()
    state = tiny.state()
    assert settings(client, state, "live")["continuous"]["pause_status"] == "PAUSED"
    assert not tiny.plan().is_empty


def test_a_plan_is_not_carried_out_once_something_has_moved(tiny, client):
    state = tiny.deploy()
    changed = tiny.change()
    made = tiny.plan(changed)
    reset(client, state.jobs["live"].id, {**settings(client, state, "live"), "timeout_seconds": 60})
    with pytest.raises(DeploymentError, match=r"no longer true: jobs moved"):
        apply(made, changed, tiny.place(), Order("deploy", limits=PROMPT), tiny.said.append)
    assert tiny.state() == state
    assert type(made).of(made.text()) == made


def test_a_stopped_job_stays_stopped_over_a_deployment(tiny, client):
    tiny.deploy()
    stop("live", tiny.place(), Limits(0.2, 5), break_lock=False, say=tiny.said.append)
    state = tiny.state()
    assert state.stopped == ("live",)
    assert settings(client, state, "live")["continuous"]["pause_status"] == "PAUSED"
    assert runs(client, state, "live", active_only=True) == []
    assert tiny.plan().is_empty

    changed = tiny.change()
    tiny.deploy(changed)
    assert runs(client, tiny.state(), "live", active_only=True) == []
    assert next(job for job in tiny.plan(changed).jobs if job.key == "live").stopped

    start("live", tiny.place(), break_lock=False, say=tiny.said.append)
    assert tiny.state().stopped == ()
    (run,) = runs(client, tiny.state(), "live", active_only=True)
    assert release_of(run) == {changed.id}
    assert tiny.plan(changed).is_empty


def test_a_job_with_a_schedule_is_started_by_hand_too(tiny, client):
    state = tiny.deploy()
    start("nightly", tiny.place(), break_lock=False, say=tiny.said.append)
    assert len(runs(client, state, "nightly")) == 1
    start("nightly", tiny.place(), break_lock=False, say=tiny.said.append)
    assert len(runs(client, state, "nightly")) == 2


def test_a_development_target_has_jobs_of_its_own_that_do_not_start_by_themselves(tiny, client):
    state = tiny.deploy(environment="dev")
    live = settings(client, state, "live")
    assert (live["name"], live["continuous"]["pause_status"]) == ("[dev alice] live", "PAUSED")
    assert live["tags"] == {"headrace": "tiny/dev/live", "dev": "alice"}
    assert live["tasks"][0]["python_wheel_task"]["named_parameters"]["value"] == "user=alice"
    assert runs(client, state, "live") == []
    start("live", tiny.place("dev"), break_lock=False, say=tiny.said.append)
    changed = tiny.change()
    tiny.deploy(changed, environment="dev")
    (run,) = runs(client, state, "live", active_only=True)
    assert release_of(run) == {changed.id}
    assert tiny.plan(changed, "dev").is_empty


def test_production_runs_as_its_service_and_lets_its_readers_look(tiny, workspace, client):
    state = tiny.deploy(environment="prod")
    who = {"service_principal_name": "11111111-2222-3333-4444-555555555555"}
    assert settings(client, state, "live")["run_as"] == who
    grants = client.api_client.do("GET", f"/api/2.0/permissions/jobs/{state.jobs['live'].id}")["access_control_list"]
    assert {(one.get("group_name"), one["all_permissions"][0]["permission_level"]) for one in grants} >= {
        ("readers", "CAN_VIEW"),
        (None, "IS_OWNER"),
    }
    directory = client.workspace.get_status(f"/Workspace/Shared/tiny/prod/releases/{state.release}").object_id
    told = client.api_client.do("GET", f"/api/2.0/permissions/directories/{directory}")["access_control_list"]
    assert {**who, "all_permissions": [{"permission_level": "CAN_READ", "inherited": False}]} in told


def test_old_releases_go_and_those_in_use_stay(tiny, workspace):
    first = tiny.deploy(keep=2).release
    ids = [first]
    for _ in range(3):
        ids.append(tiny.deploy(tiny.change(), keep=2).release)
    there = {path.name for path in (workspace.directory / "Workspace/Shared/tiny/staging/releases").iterdir()}
    assert there == set(ids[-2:])
    assert [entry.release for entry in tiny.state().history] == ids


def test_a_deployment_from_elsewhere_is_not_taken_over(tiny, client):
    tiny.deploy()
    elsewhere = tiny.change(
        **{"databricks.yml": (tiny.root / "databricks.yml").read_text().replace("tiny/staging", "other/staging")}
    )
    with pytest.raises(
        DeploymentError, match="was deployed from elsewhere: its state is /Workspace/Shared/tiny/staging"
    ):
        tiny.plan(elsewhere)


def test_a_lock_of_another_is_minded_until_it_is_broken(tiny, workspace):
    tiny.deploy()
    changed = tiny.change()
    lock = workspace.directory / "Workspace/Shared/tiny/staging/lock.json"
    held = {
        "id": "1",
        "owner": "carol",
        "host": "far",
        "machine": "m",
        "process": 1,
        "since": "2026-01-01T00:00:00+00:00",
        "what": "deploy",
    }
    lock.write_text(json.dumps(held))
    with pytest.raises(
        DeploymentError, match=r"is being changed by carol on far \(process 1, deploy, for \d+ days\)"
    ) as told:
        tiny.deploy(changed)
    assert "--break-lock" in told.value.problems[0].fix
    assert lock.exists()
    tiny.deploy(changed, break_lock=True)
    assert any("carol on far" in line and "is broken" in line for line in tiny.said)
    assert not lock.exists()


def test_a_release_whose_bytes_change_on_the_way_is_refused(tiny, workspace, monkeypatch):
    place = tiny.place()
    write = type(place.remote).write

    def spoil(self, path, content):
        write(self, path, b"spoiled" if path.endswith("/databricks.yml") else content)

    monkeypatch.setattr(type(place.remote), "write", spoil)
    with pytest.raises(DeploymentError, match=r"databricks\.yml is not what was uploaded"):
        tiny.deploy()
    monkeypatch.undo()


def test_a_setting_that_changes_is_told_by_its_name(tiny):
    tiny.deploy()
    bigger = tiny.change(**{"resources/live.job.yml": LIVE.replace("num_workers: 1", "num_workers: 2")})
    live = tiny.plan(bigger).jobs[0]
    (change,) = [change for change in live.changes if "num_workers" in change.path]
    assert (change.path, change.old, change.new) == ("job_clusters[main].new_cluster.num_workers", 1, 2)


def test_what_may_be_done_with_a_job_is_as_the_target_says_and_its_owner_stays(tiny, client):
    def granted(state):
        path = f"/api/2.0/permissions/jobs/{state.jobs['live'].id}"
        return {
            (one.get("group_name") or one.get("user_name"), level["permission_level"])
            for one in client.api_client.do("GET", path)["access_control_list"]
            for level in one["all_permissions"]
            if not level["inherited"]
        }

    owner = ("alice@example.com", "IS_OWNER")
    assert granted(tiny.deploy()) == {owner}
    permissions = "staging:\n    permissions: [{level: CAN_RUN, group_name: users}]"
    changed = tiny.change(**{"databricks.yml": DATABRICKS.replace("staging:", permissions, 1)})
    assert granted(tiny.deploy(changed)) == {owner, ("users", "CAN_MANAGE_RUN")}
    assert tiny.plan(changed).is_empty
    assert granted(tiny.deploy(tiny.change(**{"databricks.yml": DATABRICKS}))) == {owner}


def test_two_targets_with_one_state_do_not_take_each_others_jobs(tiny):
    tiny.deploy()
    same = 'host: "https://b.example.com", root_path: /Workspace/Shared/tiny/staging'  # as it says, on another host
    tiny.change(**{"databricks.yml": DATABRICKS.replace("root_path: /Workspace/Shared/tiny/prod", same)})
    with pytest.raises(DeploymentError, match=r"is 'tiny/staging/live', and not of environment 'prod'"):
        tiny.plan(environment="prod")


def test_a_job_that_is_gone_and_no_longer_wanted_is_forgotten(tiny, client):
    state = tiny.deploy()
    client.jobs.delete(state.jobs["nightly"].id)
    changed = tiny.change(**{"resources/nightly.job.yml": None})
    (_, nightly) = tiny.plan(changed).jobs
    assert (nightly.action, nightly.id) == ("delete", None)
    assert set(tiny.deploy(changed).jobs) == {"live"}
    assert tiny.plan(changed).is_empty


def test_destroying_takes_a_job_too_that_a_deployment_made_and_lost(tiny, workspace, client):
    state = tiny.deploy()
    place = tiny.place()
    lost = replace(
        state, intent=Intent("deploy", state.release, "", "", {"nightly": state.jobs["nightly"].body["name"]})
    )
    Ledger(place).write(lost.without_job("nightly"))
    destroy(place, PROMPT, break_lock=False, say=tiny.said.append)
    assert list(client.jobs.list()) == []
    assert "job nightly: deleted" in tiny.said
    assert not (workspace.directory / "Workspace/Shared/tiny/staging").exists()


def test_a_job_that_no_longer_says_who_it_runs_as_is_not_left_with_the_old_one(tiny, client):
    tiny.deploy(environment="prod")
    without = DATABRICKS.replace("    run_as: {service_principal_name: 11111111-2222-3333-4444-555555555555}\n", "")
    changed = tiny.change(**{"databricks.yml": without})
    state = tiny.deploy(changed, environment="prod")
    assert settings(client, state, "live")["run_as"] == {"user_name": "alice@example.com"}
    assert tiny.plan(changed, "prod").is_empty


def test_a_file_that_could_not_be_read_back_is_refused_before_anything_is_laid_down(tiny, monkeypatch):
    monkeypatch.setattr(Workspace, "largest", 10)
    with pytest.raises(DeploymentError, match="a workspace gives back 10 at most"):
        tiny.deploy()
    assert tiny.state().serial == 0


def test_old_releases_that_cannot_be_deleted_are_left_for_the_next_time(tiny, monkeypatch):
    tiny.deploy()

    def refuse(place, releases):
        raise DeploymentError("no such luck", fix="none")

    monkeypatch.setattr(upload, "prune", refuse)
    state = tiny.deploy(tiny.change(), keep=1)
    assert state.history[-1].ended == "done"
    assert "old releases were not deleted, the next deployment tries again: no such luck" in tiny.said


def entry(release, *, what="deploy", ended="done"):
    return Entry(0, what, release, "", "", ended=ended)


@pytest.mark.parametrize(
    ("history", "intent", "back"),
    [
        ([entry("a"), entry("b")], "", "a"),
        ([entry("a"), entry("b"), entry("c"), entry("b", what="rollback")], "", "a"),  # and not on to c
        ([entry("a"), entry("b"), entry("a")], "", "b"),  # deployed again, after b
        ([entry("a"), entry("b"), entry("c", ended="no run")], "", "b"),
        ([entry("a"), entry("b"), entry("a", what="rollback", ended="no run")], "", "a"),
        ([entry("a"), entry("b")], "deploy", "b"),  # of c, which did not come to its end
        ([entry("a"), entry("b")], "rollback", "c"),  # which goes on
    ],
)
def test_back_is_the_release_below_the_present_one(tiny, history, intent, back):
    last = next(one.release for one in reversed(history) if one.ended == "done")
    open_ = Intent(intent, "c", "", "") if intent else None
    assert earlier(State("l", release=last, history=tuple(history), intent=open_), tiny.place()) == back


def test_a_run_that_names_no_release_belongs_to_any():
    assert Run(1, "RUNNING").uses("r")
    assert not Run(1, "RUNNING").names("r")
    serverless = {"run_id": 1, "tasks": [{"task_key": "t", "run_id": 2, "python_wheel_task": {"named_parameters": {}}}]}
    serverless["tasks"][0]["python_wheel_task"]["named_parameters"]["conf"] = "/Workspace/x/releases/r/conf"
    run = workspace_module._run(serverless)
    assert (run.uses("r"), run.uses("other")) == (True, False)


@pytest.mark.parametrize("job", ["live", "nightly"])
def test_a_request_of_a_command_that_was_killed_is_withdrawn(tiny, workspace, job):
    """Otherwise the job's next run would take it for its own; a job with a run, and one without."""
    number, place = tiny.deploy().jobs[job].id, tiny.place()
    path = "/Volumes/main/shop/checkpoints/p/stop.json"
    (workspace.directory / path.lstrip("/")).parent.mkdir(parents=True)
    assert place.remote.ask(path, b"of a command that was killed")
    place.remote.reset_job(number, paused(dict(place.remote.job(number).settings)))
    drain(number, job, [path], place, PROMPT, tiny.said.append)
    assert not (workspace.directory / path.lstrip("/")).exists()
    assert not place.remote.runs(number, active=True)
