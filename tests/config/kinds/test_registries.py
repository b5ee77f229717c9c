"""Each registered kind has the implementation that its model names."""

from __future__ import annotations

from importlib import import_module

import pytest

from headrace.config.kinds.expectation import EXPECTATIONS
from headrace.config.kinds.sinks import SINKS
from headrace.config.kinds.sources import SOURCES
from headrace.expectations.row_checks import IMPLEMENTATIONS


@pytest.mark.parametrize("model", SOURCES)
def test_source_kind_can_be_opened(model) -> None:
    assert callable(import_module(model.implementation).open_stream)


@pytest.mark.parametrize("name", SINKS)
def test_sink_kind_writes_streams_and_batches_unless_it_is_native(name: str) -> None:
    implementation = import_module(SINKS[name].implementation)
    assert callable(implementation.open_stream)
    assert hasattr(implementation, "write_batch") != bool(SINKS[name].native_outputs)
    assert name in SINKS[name].model_fields


def test_every_expectation_kind_is_implemented() -> None:
    assert set(EXPECTATIONS) == set(IMPLEMENTATIONS)
