"""Rules for deployments: steps that would refuse to start are refused before a running job is stopped."""

from __future__ import annotations

import pytest

from deployments import SHORT_TIMEOUTS, with_keys
from headrace.deploy.deployed_jobs import stop_job
from headrace.deploy.policy import require_allowed
from headrace.errors import DeploymentError


@pytest.fixture
def changed(tiny):
    """A release with another deduplication key than the deployed one, and its plan."""
    tiny.deploy(with_keys(tiny.release(), "id"))
    release = with_keys(tiny.change(), "n")
    return release, lambda: tiny.plan(release)


def check(tiny, release, plan):
    require_allowed(plan, release, tiny.target(), deletable=(), any_identity=False)


def test_step_that_would_refuse_to_start_is_refused_before_its_job_is_stopped(tiny, changed):
    release, plan = changed
    with pytest.raises(DeploymentError, match=r"step p/land cannot continue its checkpoint .* id → n") as error:
        check(tiny, release, plan())
    assert "headrace reset p --step land --env staging" in str(error.value)
    assert "then deploy again and start the job: headrace start live --env staging" in str(error.value)


def test_stopped_job_may_be_deployed_so_that_its_steps_can_be_reset(tiny, changed):
    release, plan = changed
    stop_job("live", tiny.target(), SHORT_TIMEOUTS, break_lock=False, report=tiny.reported.append)
    check(tiny, release, plan())


def test_unchanged_step_is_allowed(tiny, changed):
    release = with_keys(tiny.change(), "id")
    check(tiny, release, tiny.plan(release))
