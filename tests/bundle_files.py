"""Small environment files, and the problems of a bundle as text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from headrace.config.load import load_bundle
from headrace.errors import ConfigurationError

LOCAL = "engine: {kind: local}\ntables: {root: tables}\ncheckpoints: checkpoints\n"  # `sources` are to be added
DATABRICKS = """\
engine: {kind: databricks}
tables: {catalog: dev, schema: shop}
checkpoints: /Volumes/dev/shop/checkpoints
sources: {ticks: {kind: rate}}
"""


def problems_of(root: Path, environment: str = "local", values: Mapping[str, str] | None = None) -> str:
    """Return the whole message with which loading a bundle fails."""
    with pytest.raises(ConfigurationError) as error:
        load_bundle(root, environment, values or {})
    return str(error.value)


def errors_of(root: Path, environment: str = "local", values: Mapping[str, str] | None = None) -> list[str]:
    """Return the first line of each problem with which loading a bundle fails."""
    return [line for line in problems_of(root, environment, values).splitlines() if line.startswith("Error")]
