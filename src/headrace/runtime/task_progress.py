"""Measure the time since a Spark task of a query last finished."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


TASK_POLL_INTERVAL_S = 0.5


class TaskProgress:
    """Measures for how long no Spark task of one run of a query has finished."""

    def __init__(self, spark: SparkSession, run_id: str) -> None:
        # On Spark Connect, which has no status tracker, the time since the creation of this object is measured.
        self._tracker = spark.sparkContext.statusTracker() if hasattr(spark, "_jvm") else None
        self._run_id = run_id
        self._since = self._polled = time.monotonic()
        self._finished = self._finished_tasks()

    def seconds_without(self) -> float:
        """Return for how many seconds no task has finished, or since the creation of this object if that is less."""
        now = time.monotonic()
        if now - self._polled > TASK_POLL_INTERVAL_S:
            self._polled, finished = now, self._finished_tasks()
            if finished != self._finished:
                self._since, self._finished = now, finished
        return now - self._since

    def _finished_tasks(self) -> tuple[tuple[int, int], ...]:
        """Return the id and the number of finished tasks of each stage of the query's latest job.

        Return an empty tuple if there is no job, or on Spark Connect.
        """
        if self._tracker is None:
            return ()
        jobs = self._tracker.getJobIdsForGroup(self._run_id)
        latest = self._tracker.getJobInfo(max(jobs)) if jobs else None
        stages = [self._tracker.getStageInfo(number) for number in latest.stageIds] if latest else []
        return tuple((stage.stageId, stage.numCompletedTasks) for stage in stages if stage is not None)
