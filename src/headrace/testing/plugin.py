"""The pytest plugin with the fixtures `spark`, a session that all tests share, and `stream`, a StreamHarness."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from headrace.testing.stream_harness import StreamHarness

if TYPE_CHECKING:  # pytest always loads this plugin, even if pyspark is not installed
    from pyspark.sql import SparkSession

    from headrace.config.models import Setting

__all__ = ["spark", "spark_settings", "stream"]


@pytest.fixture(scope="session")
def spark_settings() -> dict[str, Setting]:
    """Return additional Spark settings, by default none. Override this fixture in conftest.py to add some."""
    return {}


@pytest.fixture(scope="session")
def spark(spark_settings: dict[str, Setting], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Yield a local Spark session with Delta, tuned for tests and shared by all of them."""
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
    """Return a harness that runs transforms as real streams in a temporary directory."""
    return StreamHarness(spark, tmp_path_factory.mktemp("stream"))
