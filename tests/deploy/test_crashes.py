"""A sample of the cases of scripts/deploy-faults: commands are killed or suspended, and converge when repeated."""

from __future__ import annotations

import random

import pytest

from crashes import MOMENTS, Crash, prepare_scenarios, run_case

SEED, SAMPLE = 4, 3


@pytest.mark.full
def test_killed_and_suspended_commands_converge_when_they_are_repeated(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("DATABRICKS_HOST", raising=False)
    monkeypatch.delenv("DATABRICKS_TOKEN", raising=False)
    rng = random.Random(SEED)
    for scenario in prepare_scenarios(tmp_path):
        crashes = [Crash(call, moment) for call in range(1, scenario.call_count + 1) for moment in MOMENTS]
        for first in rng.sample(crashes, SAMPLE):
            second = rng.choice(crashes)
            assert run_case(scenario, first, second) == [], f"{scenario.name}: stopped {first}, then {second}"
        with capsys.disabled():
            print(f"\n{scenario.name}: {scenario.call_count} calls, {SAMPLE} of {len(crashes)} crashes", end="")
