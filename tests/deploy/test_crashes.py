"""A sample of what scripts/deploy-faults tries in full: the client dies twice, and the third time it converges."""

from __future__ import annotations

import random

import pytest

from crashes import WHENS, Crash, case, grounds

SEED, SAMPLE = 4, 6


@pytest.mark.parametrize("number", [0, 1], ids=["first", "update"])
def test_a_killed_deployment_converges_when_it_is_repeated(number, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("DATABRICKS_HOST", raising=False)
    monkeypatch.delenv("DATABRICKS_TOKEN", raising=False)
    ground = grounds(tmp_path)[number]
    crashes = [Crash(call, when) for call in range(1, ground.calls + 1) for when in WHENS]
    rng = random.Random(SEED)
    for crash in rng.sample(crashes, SAMPLE):
        again = rng.choice(crashes)
        assert case(ground, crash, again) == [], f"killed {crash}, then {again}"
    with capsys.disabled():
        print(f"\n{ground.name}: {ground.calls} calls, {SAMPLE} of {len(crashes)} crashes, each repeated", end="")
