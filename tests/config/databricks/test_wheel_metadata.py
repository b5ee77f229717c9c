"""The entry points and parameters that are listed in the source must be those of the wheel."""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path

import pytest

from headrace import entry_points
from headrace.config.databricks.wheel_metadata import ENTRY_POINT_LAYERS, PARAMETERS, REQUIRED_PARAMETERS
from headrace.deploy.deployed_reset import ENTRY_POINT

REPOSITORY = Path(__file__).parents[3]


def test_entry_points_match_pyproject() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert set(project["entry-points"]["headrace.jobs"]) == {*ENTRY_POINT_LAYERS, ENTRY_POINT}


def test_parameters_match_the_argument_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    parsers: list[argparse.ArgumentParser] = []
    monkeypatch.setattr(entry_points._ArgumentParser, "parse_args", lambda self, argv: parsers.append(self))
    entry_points._parse([])
    options = {action.dest: action.required for action in parsers[0]._actions}
    assert tuple(sorted(options)) == PARAMETERS
    assert {name for name, required in options.items() if required} == set(REQUIRED_PARAMETERS)
