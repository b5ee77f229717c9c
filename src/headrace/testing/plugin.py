"""The pytest plugin: `spark`, tuned and shared by the whole session, and `stream`, the harness on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from headrace.testing.stream_harness import StreamHarness

if TYPE_CHECKING:  # pytest loads this plugin in every run, also where there is no pyspark
    from pyspark.sql import SparkSession

    from headrace.config.models import Setting


@pytest.fixture(scope="session")
def spark_settings() -> dict[str, Setting]:
    """Spark settings of your own: override this fixture in conftest.py."""
    return {}


@pytest.fixture(scope="session")
def spark(spark_settings: dict[str, Setting], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One tuned local Spark, with Delta, for all tests."""
    from headrace.config.models import LocalEngine
    from headrace.spark.session import close_session, open_session

    session = open_session(
        LocalEngine(kind="local"),
        name="pytest",
        directory=tmp_path_factory.mktemp("spark"),
        settings={"spark.sql.streaming.pollingDelay": "10ms", **spark_settings},
    )
    yield session
    close_session(session)


@pytest.fixture
def stream(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> StreamHarness:
    """Runs transforms as real streams in a temporary directory."""
    return StreamHarness(spark, tmp_path_factory.mktemp("stream"))
