"""A sample of the cases of scripts/deploy-faults: a deployment is killed twice and converges at the third attempt."""

from __future__ import annotations

import random

import pytest

from crashes import MOMENTS, Crash, prepare_scenarios, run_case

SEED, SAMPLE = 4, 6


@pytest.mark.full
@pytest.mark.parametrize("index", [0, 1], ids=["first", "update"])
def test_killed_deployment_converges_when_repeated(index, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("DATABRICKS_HOST", raising=False)
    monkeypatch.delenv("DATABRICKS_TOKEN", raising=False)
    scenario = prepare_scenarios(tmp_path)[index]
    crashes = [Crash(call, moment) for call in range(1, scenario.call_count + 1) for moment in MOMENTS]
    rng = random.Random(SEED)
    for first in rng.sample(crashes, SAMPLE):
        second = rng.choice(crashes)
        assert run_case(scenario, first, second) == [], f"killed {first}, then {second}"
    with capsys.disabled():
        print(f"\n{scenario.name}: {scenario.call_count} calls, {SAMPLE} of {len(crashes)} crashes", end="")
