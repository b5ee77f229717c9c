"""Deployments to a local workspace: what they create, update, restart and restore."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from deployments import DATABRICKS, FILES, LIVE, PIPELINE, SHORT_TIMEOUTS, with_keys
from headrace.deploy import databricks_workspace as workspace_module
from headrace.deploy import upload
from headrace.deploy.apply import apply
from headrace.deploy.deploy_state import HistoryEntry, Intent, State, pause_triggers
from headrace.deploy.deployed_jobs import destroy, start_job, stop_job
from headrace.deploy.deployment import ApplyOptions, Deployment
from headrace.deploy.drain import Timeouts, drain
from headrace.deploy.plan import Plan
from headrace.deploy.plan_text import render_plan
from headrace.deploy.policy import require_supported_compute
from headrace.deploy.release_history import choose_rollback_release
from headrace.deploy.remote import Run
from headrace.deploy.state_store import StateStore
from headrace.errors import DataError, DeploymentError
from headrace.testing.workspace import files_api
from workspaces import reset


def settings(client, state, key):
    return client.api_client.do("GET", "/api/2.2/jobs/get", query={"job_id": state.jobs[key].id})["settings"]


def runs(client, state, key, **query):
    query = {"job_id": state.jobs[key].id, "expand_tasks": True, **query}
    return client.api_client.do("GET", "/api/2.2/jobs/runs/list", query=query).get("runs", [])


def releases_of(run):
    return {
        library["whl"].split("/releases/")[1].split("/")[0]
        for library in run["tasks"][0]["libraries"]
        if "whl" in library
    }


def test_first_deployment_uploads_the_release_and_creates_the_jobs(tiny, workspace, client):
    built = tiny.release()
    state = tiny.deploy()
    uploaded = workspace.directory / "Workspace/Shared/tiny/staging.headrace/releases" / built.id
    assert {path: (uploaded / path).read_bytes() for path in built.manifest.files} == {
        path: (built.directory / path).read_bytes() for path in built.manifest.files
    }
    live = settings(client, state, "live")
    assert live["continuous"]["pause_status"] == "UNPAUSED"
    assert live["max_concurrent_runs"] == 1
    assert live["tags"] == {"headrace": "tiny/staging/live"}
    (task,) = live["tasks"]
    directory = f"/Workspace/Shared/tiny/staging.headrace/releases/{built.id}"
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
    assert (run["state"]["life_cycle_state"], releases_of(run)) == ("RUNNING", {built.id})
    assert settings(client, state, "nightly")["schedule"]["pause_status"] == "UNPAUSED"
    assert runs(client, state, "nightly") == []
    (entry,) = state.history
    assert (entry.command, entry.release, entry.by, entry.outcome, entry.dirty) == (
        "deploy",
        built.id,
        "alice@example.com",
        "done",
        False,
    )
    assert tiny.plan().is_empty
    assert not (uploaded.parents[1] / "lock.json").exists()


def test_new_release_replaces_the_active_run(tiny, client):
    tiny.deploy()
    changed = tiny.change()
    plan = tiny.plan(changed)
    assert {job.key: (job.action, job.restarts) for job in plan.jobs} == {
        "live": ("update", True),
        "nightly": ("update", False),
    }
    state = tiny.deploy(changed)
    last, first = runs(client, state, "live")
    assert first["state"]["result_state"] == "CANCELED"
    assert (last["state"]["life_cycle_state"], releases_of(last)) == ("RUNNING", {changed.id})
    assert [entry.release for entry in state.history] == [plan.deployed_release, changed.id]
    assert tiny.plan(changed).is_empty


def test_changes_outside_headrace_are_shown_as_drift_and_reset(tiny, client):
    state = tiny.deploy()
    deployed = settings(client, state, "live")
    reset(client, state.jobs["live"].id, {**deployed, "timeout_seconds": 60, "continuous": {"pause_status": "PAUSED"}})
    (live, nightly) = tiny.plan().jobs
    assert [(change.path, change.old, change.new) for change in live.drift] == [
        ("continuous.pause_status", "UNPAUSED", "PAUSED"),
        ("timeout_seconds", 0, 60),
    ]
    assert (live.changes, nightly.action) == ((), "unchanged")
    tiny.deploy()
    assert settings(client, state, "live") == deployed
    assert tiny.plan().is_empty


def test_job_deleted_outside_headrace_is_created_again(tiny, client):
    state = tiny.deploy()
    client.jobs.delete(state.jobs["nightly"].id)
    (_, nightly) = tiny.plan().jobs
    assert (nightly.action, nightly.drift[0].path) == ("create", "job")
    new_state = tiny.deploy()
    assert new_state.jobs["nightly"].id != state.jobs["nightly"].id
    assert tiny.plan().is_empty


def test_job_deleted_outside_headrace_is_not_created_twice_after_a_crash(tiny, client, monkeypatch):
    state = tiny.deploy()
    client.jobs.delete(state.jobs["nightly"].id)
    with monkeypatch.context() as patched:
        patched.setattr(Deployment, "record", lambda *arguments, **options: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            tiny.deploy()
    (created,) = client.jobs.list(name="nightly")
    assert tiny.deploy().jobs["nightly"].id == created.job_id
    assert [job.job_id for job in client.jobs.list(name="nightly")] == [created.job_id]


def test_job_that_the_release_does_not_define_is_deleted(tiny, client):
    state = tiny.deploy()
    changed = tiny.change(**{"resources/nightly.job.yml": None})
    assert [(job.key, job.action) for job in tiny.plan(changed).jobs] == [("live", "update"), ("nightly", "delete")]
    assert set(tiny.deploy(changed).jobs) == {"live"}
    assert [job.job_id for job in client.jobs.list()] == [state.jobs["live"].id]
    assert tiny.plan(changed).is_empty


def test_job_is_restored_if_its_new_run_fails(tiny, workspace, client, monkeypatch):
    before = tiny.deploy()
    changed = tiny.change()
    work = type(workspace._dispatcher._execute_tasks)
    original = work.__call__

    def fail(self, run, event, keep):
        if any(changed.id in library.get("whl", "") for library in run.settings["tasks"][0]["libraries"]):
            raise OSError("no such wheel")
        original(self, run, event, keep)

    monkeypatch.setattr(work, "__call__", fail)
    with pytest.raises(
        DeploymentError, match=r"(?s)job 'live' does not work with release .*no such wheel.*was restored"
    ):
        tiny.deploy(changed)
    state = tiny.state()
    assert (state.release, state.jobs["live"].release) == (before.release, before.release)
    assert state.history[-1].outcome.startswith("job 'live' does not work")
    (run,) = runs(client, state, "live", active_only=True)
    assert releases_of(run) == {before.release}
    monkeypatch.setattr(work, "__call__", original)
    tiny.deploy(changed)
    assert tiny.plan(changed).is_empty


def test_new_job_is_left_paused_if_its_run_fails(tiny, workspace, client, monkeypatch):
    def fail(self, run, event, keep):
        raise OSError("no such wheel")

    monkeypatch.setattr(type(workspace._dispatcher._execute_tasks), "__call__", fail)
    with pytest.raises(DeploymentError, match="left paused"):
        tiny.deploy()
    state = tiny.state()
    assert settings(client, state, "live")["continuous"]["pause_status"] == "PAUSED"
    assert not tiny.plan().is_empty


def test_stale_plan_is_not_applied(tiny, client):
    state = tiny.deploy()
    changed = tiny.change()
    plan = tiny.plan(changed)
    reset(client, state.jobs["live"].id, {**settings(client, state, "live"), "timeout_seconds": 60})
    options = ApplyOptions("deploy", timeouts=SHORT_TIMEOUTS)
    with pytest.raises(DeploymentError, match=r"is stale: jobs changed since"):
        apply(plan, changed, tiny.target(), options, tiny.reported.append)
    assert tiny.state() == state
    assert type(plan).from_json(plan.to_json()) == plan


def test_stopped_job_stays_stopped_across_deployments(tiny, client):
    tiny.deploy()
    stop_job("live", tiny.target(), Timeouts(0.2, 5), break_lock=False, report=tiny.reported.append)
    state = tiny.state()
    assert state.stopped == ("live",)
    assert settings(client, state, "live")["continuous"]["pause_status"] == "PAUSED"
    assert runs(client, state, "live", active_only=True) == []
    assert tiny.plan().is_empty

    changed = tiny.change()
    tiny.deploy(changed)
    assert runs(client, tiny.state(), "live", active_only=True) == []
    assert next(job for job in tiny.plan(changed).jobs if job.key == "live").stopped

    start_job("live", tiny.target(), break_lock=False, report=tiny.reported.append)
    assert tiny.state().stopped == ()
    (run,) = runs(client, tiny.state(), "live", active_only=True)
    assert releases_of(run) == {changed.id}
    assert tiny.plan(changed).is_empty


def test_scheduled_job_can_be_started_manually(tiny, client):
    state = tiny.deploy()
    start_job("nightly", tiny.target(), break_lock=False, report=tiny.reported.append)
    assert len(runs(client, state, "nightly")) == 1
    start_job("nightly", tiny.target(), break_lock=False, report=tiny.reported.append)
    assert len(runs(client, state, "nightly")) == 2


def test_development_target_has_its_own_paused_jobs(tiny, client):
    state = tiny.deploy(environment="dev")
    live = settings(client, state, "live")
    assert (live["name"], live["continuous"]["pause_status"]) == ("[dev alice] live", "PAUSED")
    assert live["tags"] == {"headrace": "tiny/dev/live", "dev": "alice"}
    assert live["tasks"][0]["python_wheel_task"]["named_parameters"]["value"] == "user=alice"
    assert runs(client, state, "live") == []
    start_job("live", tiny.target("dev"), break_lock=False, report=tiny.reported.append)
    changed = tiny.change()
    tiny.deploy(changed, environment="dev")
    (run,) = runs(client, state, "live", active_only=True)
    assert releases_of(run) == {changed.id}
    assert tiny.plan(changed, "dev").is_empty


def test_production_jobs_run_as_the_service_principal_and_readers_may_view_them(tiny, workspace, client):
    state = tiny.deploy(environment="prod")
    principal = {"service_principal_name": "11111111-2222-3333-4444-555555555555"}
    assert settings(client, state, "live")["run_as"] == principal
    grants = client.api_client.do("GET", f"/api/2.0/permissions/jobs/{state.jobs['live'].id}")["access_control_list"]
    assert {(grant.get("group_name"), grant["all_permissions"][0]["permission_level"]) for grant in grants} >= {
        ("readers", "CAN_VIEW"),
        (None, "IS_OWNER"),
    }
    directory = client.workspace.get_status(f"/Workspace/Shared/tiny/prod.headrace/releases/{state.release}").object_id
    grants = client.api_client.do("GET", f"/api/2.0/permissions/directories/{directory}")["access_control_list"]
    assert {**principal, "all_permissions": [{"permission_level": "CAN_READ", "inherited": False}]} in grants


def test_old_releases_are_deleted_and_used_ones_are_kept(tiny, workspace):
    first = tiny.deploy(keep=2).release
    ids = [first]
    for _ in range(3):
        ids.append(tiny.deploy(tiny.change(), keep=2).release)
    kept = {path.name for path in (workspace.directory / "Workspace/Shared/tiny/staging.headrace/releases").iterdir()}
    assert kept == set(ids[-2:])
    assert [entry.release for entry in tiny.state().history] == ids


def test_job_of_another_deployment_is_not_taken_over(tiny, client):
    tiny.deploy()
    other = tiny.change(
        **{"databricks.yml": (tiny.root / "databricks.yml").read_text().replace("tiny/staging", "other/staging")}
    )
    message = "belongs to another deployment, whose state is /Workspace/Shared/tiny/staging.headrace"
    with pytest.raises(DeploymentError, match=message):
        tiny.plan(other)


def test_lock_of_another_user_is_respected_until_it_is_broken(tiny, workspace):
    tiny.deploy()
    changed = tiny.change()
    lock = workspace.directory / "Workspace/Shared/tiny/staging.headrace/lock.json"
    content = {
        "id": "1",
        "owner": "carol",
        "host": "far",
        "machine": "m",
        "process": 1,
        "since": "2026-01-01T00:00:00+00:00",
        "what": "deploy",
    }
    lock.write_text(json.dumps(content))
    message = r"is being changed by carol on far \(process 1, deploy, for \d+ days\)"
    with pytest.raises(DeploymentError, match=message) as raised:
        tiny.deploy(changed)
    assert "--break-lock" in raised.value.problems[0].fix
    assert lock.exists()
    tiny.deploy(changed, break_lock=True)
    assert any("carol on far" in line and "is broken" in line for line in tiny.reported)
    assert not lock.exists()


def test_file_that_changes_during_the_upload_is_an_error(tiny, workspace, monkeypatch):
    remote = type(tiny.target().remote)
    write_file = remote.write_file

    def corrupt(self, path, content):
        write_file(self, path, b"corrupt" if path.endswith("/databricks.yml") else content)

    monkeypatch.setattr(remote, "write_file", corrupt)
    with pytest.raises(DeploymentError, match=r"databricks\.yml differs from the file that was uploaded"):
        tiny.deploy()
    monkeypatch.undo()


def signed(release, step):
    """Return the release with this entry for step `land` of pipeline p in its manifest."""
    signatures = {"environments": {"staging": {"p": {"land": step}}}}
    return replace(release, manifest=replace(release.manifest, signatures=signatures))


def test_plan_compares_the_steps_with_those_of_the_deployed_release(tiny):
    reason = "the schema of input 'rows' is inferred from its data"
    first = signed(tiny.release(), {"not_computed": reason})
    assert tiny.plan(first).steps == ()
    tiny.deploy(first)
    assert tiny.plan(first).steps == ()
    (step,) = tiny.plan(signed(tiny.change(), {"signature": {}})).steps
    assert step.reason == f"the deployed release has no signature of it: {reason}"
    plan = tiny.plan(tiny.change())
    assert plan.steps == ()
    assert plan.steps_not_compared == f"release {plan.release} has no signatures: an older version of Headrace built it"


def test_plan_shows_changed_keys_of_the_configuration_and_the_commits(tiny, golden):
    old = with_keys(tiny.release(), "id")
    tiny.deploy(old)
    pipeline = PIPELINE.replace("{source: ticks}", "{source: ticks, expect: [{not_null: [value]}]}")
    other = "  copy: {layer: silver, reads: {rows: {table: landed}}, writes: {table: copied}}\n"
    staging = FILES["conf/staging.yml"].replace("30 seconds", "1 minute")
    prod = FILES["conf/prod.yml"].replace("30 seconds", "2 minutes")
    files = {"conf/pipelines/p.yml": pipeline + other, "conf/staging.yml": staging, "conf/prod.yml": prod}
    new = with_keys(tiny.change(**files), "id")
    plan = tiny.plan(new)
    text = "\n".join(render_plan(plan))
    for release, name in ((old, "OLD"), (new, "NEW")):
        text = text.replace(release.id, name)
    text = text.replace(tiny.target().remote.name, "WORKSPACE")
    golden("deploy/configuration", re.sub(r"g?\b[0-9a-f]{7,12}\b", "HASH", text))
    assert Plan.from_json(plan.to_json()) == plan
    assert Plan.from_json(plan.to_json()).commits == plan.commits


@pytest.mark.parametrize("content", [b"", b"[]", b'{"id": "x", "colour": 1}', b"\xff"])
def test_manifest_that_cannot_be_read_is_named(tiny, content):
    state = tiny.deploy()
    target = tiny.target()
    target.remote.write_file(f"{target.release_path(state.release)}/manifest.json", content)
    with pytest.raises(DataError, match=rf"(?s)the manifest of release {state.release} cannot be read.*delete it"):
        tiny.plan(tiny.change())


def test_local_release_whose_manifest_cannot_be_read_is_built_again(tiny):
    release = tiny.release()
    (release.directory / "manifest.json").write_text("{")
    assert tiny.release().id == release.id
    assert upload.releases.verify(tiny.release()) == []


def test_change_of_a_setting_has_its_path(tiny):
    tiny.deploy()
    bigger = tiny.change(**{"resources/live.job.yml": LIVE.replace("num_workers: 1", "num_workers: 2")})
    live = tiny.plan(bigger).jobs[0]
    (change,) = [change for change in live.changes if "num_workers" in change.path]
    assert (change.path, change.old, change.new) == ("job_clusters[main].new_cluster.num_workers", 1, 2)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("SINGLE_USER", "USER_ISOLATION", "has access mode USER_ISOLATION"),
        ("18.x-scala2.13", "16.4.x-scala2.13", "has runtime 16.4.x-scala2.13, whose Spark is older"),
    ],
)
def test_compute_on_which_headrace_does_not_work_is_refused(tiny, old, new, reason):
    plan = tiny.plan()
    require_supported_compute(plan)
    jobs = tuple(replace(job, body=json.loads(json.dumps(job.body).replace(old, new))) for job in plan.jobs)
    with pytest.raises(DeploymentError, match=reason):
        require_supported_compute(replace(plan, jobs=jobs))


def test_job_has_the_permissions_of_its_target_and_keeps_its_owner(tiny, client):
    def grants(state):
        path = f"/api/2.0/permissions/jobs/{state.jobs['live'].id}"
        return {
            (entry.get("group_name") or entry.get("user_name"), permission["permission_level"])
            for entry in client.api_client.do("GET", path)["access_control_list"]
            for permission in entry["all_permissions"]
            if not permission["inherited"]
        }

    owner = ("alice@example.com", "IS_OWNER")
    assert grants(tiny.deploy()) == {owner}
    permissions = "staging:\n    permissions: [{level: CAN_RUN, group_name: users}]"
    changed = tiny.change(**{"databricks.yml": DATABRICKS.replace("staging:", permissions, 1)})
    assert grants(tiny.deploy(changed)) == {owner, ("users", "CAN_MANAGE_RUN")}
    assert tiny.plan(changed).is_empty
    assert grants(tiny.deploy(tiny.change(**{"databricks.yml": DATABRICKS}))) == {owner}


def test_two_targets_with_one_state_file_are_an_error(tiny):
    tiny.deploy()
    # `headrace check` accepts one root path for two targets if their hosts differ.
    same_root = 'host: "https://b.example.com", root_path: /Workspace/Shared/tiny/staging'
    tiny.change(**{"databricks.yml": DATABRICKS.replace("root_path: /Workspace/Shared/tiny/prod", same_root)})
    message = r"belongs to environment 'staging', whose state file environment 'prod' also uses"
    with pytest.raises(DeploymentError, match=message):
        tiny.plan(environment="prod")


def test_job_deleted_outside_headrace_and_from_the_release_is_removed_from_the_state(tiny, client):
    state = tiny.deploy()
    client.jobs.delete(state.jobs["nightly"].id)
    changed = tiny.change(**{"resources/nightly.job.yml": None})
    (_, nightly) = tiny.plan(changed).jobs
    assert (nightly.action, nightly.id) == ("delete", None)
    assert set(tiny.deploy(changed).jobs) == {"live"}
    assert tiny.plan(changed).is_empty


def test_destroy_deletes_a_job_that_an_unfinished_deployment_created(tiny, workspace, client):
    state = tiny.deploy()
    target = tiny.target()
    intent = Intent("deploy", state.release, "", "", {"nightly": state.jobs["nightly"].body["name"]})
    StateStore(target).write(replace(state, intent=intent).without_job("nightly"))
    destroy(target, SHORT_TIMEOUTS, break_lock=False, report=tiny.reported.append)
    assert list(client.jobs.list()) == []
    assert "job nightly: deleted" in tiny.reported
    assert not (workspace.directory / "Workspace/Shared/tiny/staging.headrace").exists()


def test_removed_run_as_does_not_stay_on_the_job(tiny, client):
    tiny.deploy(environment="prod")
    without = DATABRICKS.replace("    run_as: {service_principal_name: 11111111-2222-3333-4444-555555555555}\n", "")
    changed = tiny.change(**{"databricks.yml": without})
    state = tiny.deploy(changed, environment="prod")
    assert settings(client, state, "live")["run_as"] == {"user_name": "alice@example.com"}
    assert tiny.plan(changed, "prod").is_empty


def test_wheel_that_the_workspace_does_not_export_is_deployed_and_fetched(tiny, monkeypatch, tmp_path):
    monkeypatch.setattr(files_api, "MAX_BYTES", 600)
    release = tiny.release()
    assert (release.directory / release.manifest.wheels[0]).stat().st_size > 600
    tiny.deploy(release)
    monkeypatch.setattr(upload.releases, "list_releases", lambda root: [])
    fetched = upload.fetch_release(release.id, tiny.target(), tmp_path, tiny.reported.append)
    assert upload.releases.verify(fetched) == []


def test_plan_shows_files_of_the_deployed_release_that_are_missing_or_cut(tiny, workspace):
    release = tiny.release()
    tiny.deploy(release)
    directory = workspace.directory / "Workspace/Shared/tiny/staging.headrace/releases" / release.id
    (directory / "conf" / "staging.yml").unlink()
    (directory / "databricks.yml").write_text("bundle:")
    plan = tiny.plan(release)
    assert (plan.is_empty, plan.damaged_files) == (False, ("conf/staging.yml", "databricks.yml"))
    assert "2 of its files are missing or damaged, will be uploaded again" in "\n".join(render_plan(plan))
    tiny.deploy(release)
    assert tiny.plan(release).is_empty
    (directory / "manifest.json").unlink()
    assert set(tiny.plan(release).damaged_files) == set(release.manifest.files)


def test_failed_deletion_of_old_releases_does_not_fail_the_deployment(tiny, monkeypatch):
    tiny.deploy()

    def fail(target, releases):
        raise DeploymentError("no such luck", fix="none")

    monkeypatch.setattr(upload, "delete_releases", fail)
    state = tiny.deploy(tiny.change(), keep=1)
    assert state.history[-1].outcome == "done"
    assert "old releases were not deleted, the next deployment tries again: no such luck" in tiny.reported


def entry(release, *, command="deploy", outcome="done"):
    return HistoryEntry(0, command, release, "", "", outcome=outcome)


@pytest.mark.parametrize(
    ("history", "unfinished", "expected"),
    [
        ([entry("a"), entry("b")], "", "a"),
        ([entry("a"), entry("b"), entry("c"), entry("b", command="rollback")], "", "a"),  # and not back to c
        ([entry("a"), entry("b"), entry("a")], "", "b"),  # a was deployed again after b
        ([entry("a"), entry("b"), entry("c", outcome="no run")], "", "b"),
        ([entry("a"), entry("b"), entry("a", command="rollback", outcome="no run")], "", "a"),
        ([entry("a"), entry("b")], "deploy", "b"),  # the deployment of c is unfinished
        ([entry("a"), entry("b")], "rollback", "c"),  # the rollback to c is unfinished
    ],
)
def test_rollback_chooses_the_release_before_the_current_one(tiny, history, unfinished, expected):
    current = next(entry.release for entry in reversed(history) if entry.outcome == "done")
    intent = Intent(unfinished, "c", "", "") if unfinished else None
    state = State("l", release=current, history=tuple(history), intent=intent)
    assert choose_rollback_release(state, tiny.target()) == expected


def test_run_without_paths_of_a_release_uses_any_release():
    assert Run(1, "RUNNING").uses("r")
    assert not Run(1, "RUNNING").references("r")
    serverless = {"run_id": 1, "tasks": [{"task_key": "t", "run_id": 2, "python_wheel_task": {"named_parameters": {}}}]}
    serverless["tasks"][0]["python_wheel_task"]["named_parameters"]["conf"] = "/Workspace/x/releases/r/conf"
    run = workspace_module._parse_run(serverless)
    assert (run.uses("r"), run.uses("other")) == (True, False)


@pytest.mark.parametrize("job", ["live", "nightly"], ids=["with_active_run", "without_run"])
def test_stop_request_of_a_killed_command_is_deleted(tiny, workspace, job):
    """Otherwise it would stop the job's next run."""
    job_id, target = tiny.deploy().jobs[job].id, tiny.target()
    path = "/Volumes/main/shop/checkpoints/p/stop.json"
    (workspace.directory / path.lstrip("/")).parent.mkdir(parents=True)
    assert target.remote.write_request(path, b"of a command that was killed")
    target.remote.reset_job(job_id, pause_triggers(dict(target.remote.get_job(job_id).settings)))
    drain(job_id, job, [path], target, SHORT_TIMEOUTS, tiny.reported.append)
    assert not (workspace.directory / path.lstrip("/")).exists()
    assert not target.remote.list_runs(job_id, active=True)
