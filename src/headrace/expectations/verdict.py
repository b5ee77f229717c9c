"""Judges rows: which are refused and why, which are dropped, which only get a remark.

A judged row carries one column, `_headrace`: null for a row that nothing was said of, else what was said, the raw
record and where it came from. Refused rows keep no event time, so that they can never move a watermark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.config.models import Read, Rule, Step, milliseconds
from headrace.expectations.row_checks import RowCheck, check_names, require_compatible_values, row_checks, rule_columns
from headrace.spark.columns import quote_name, require_columns
from headrace.spark.spark_errors import configuration_errors

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

RAW, POSITION, MALFORMED = "_headrace_raw", "_headrace_position", "_headrace_malformed"
SOURCE_COLUMNS = (RAW, POSITION, MALFORMED)
VERDICT = "_headrace"
BAD_ROW_KEY = "_headrace_unique"


def check_source_rows(frame: DataFrame, read: Read) -> DataFrame:
    """Judges rows of an outside source; what it adds is only the verdict."""
    from pyspark.sql import functions as F

    own = frame.drop(*SOURCE_COLUMNS)

    def arrival(name: str, otherwise: Column) -> Column:
        return F.col(name) if name in frame.columns else otherwise

    require_columns(own, "the watermark", [read.watermark.column] if read.watermark else [])
    require_columns(own, "expect", rule_columns(read.expect))
    require_compatible_values(frame, read.expect)
    with configuration_errors("expect"):
        judged = _add_verdict(
            frame,
            [*_event_time_checks(read), *row_checks(read.expect)],
            raw=arrival(RAW, F.to_json(F.struct(*map(quote_name, own.columns)))),
            position=arrival(POSITION, F.lit(None).cast("string")),
            malformed=arrival(MALFORMED, F.lit(False)),
        )
    if read.watermark is not None:
        time = read.watermark.column
        judged = judged.withColumn(time, F.when(~is_bad(), F.col(time)))
    return judged.select(*map(quote_name, own.columns), VERDICT)


def check_result_rows(frame: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Judges the rows that a step is about to write."""
    from pyspark.sql import functions as F

    if not rules:
        return frame
    require_columns(frame, "expect", rule_columns(rules))
    with configuration_errors("expect"):
        raw = F.to_json(F.struct(*map(quote_name, frame.columns)))
        return _add_verdict(
            frame, row_checks(rules), raw=raw, position=F.lit(None).cast("string"), malformed=F.lit(False)
        )


def is_bad() -> Column:
    """True for a row that must not reach the table."""
    from pyspark.sql import functions as F

    return F.coalesce(F.col(f"{VERDICT}.bad"), F.lit(False))


def key_bad_rows(frame: DataFrame) -> DataFrame:
    """Gives each bad row a key of its own, so that deduplication passes it on."""
    from pyspark.sql import functions as F

    return frame.withColumn(BAD_ROW_KEY, F.when(is_bad(), F.reflect(F.lit("java.util.UUID"), F.lit("randomUUID"))))


def has_verdict(frame: DataFrame) -> bool:
    """Whether the rows carry a verdict."""
    return VERDICT in frame.columns


def rule_names(step: Step) -> list[str]:
    """The names under which a step's refusals can be counted."""
    rules = [rule for read in step.reads.values() for rule in read.expect] + list(step.expect)
    return ["malformed", "event time missing", "event time in the future", *check_names(rules)]


def _event_time_checks(read: Read) -> list[RowCheck]:
    from pyspark.sql import functions as F

    if read.watermark is None:
        return []
    time = F.col(read.watermark.column)
    limit = F.current_timestamp() + F.make_dt_interval(secs=F.lit(milliseconds(read.max_future) / 1000))
    return [
        RowCheck("event time missing", time.isNull()),
        RowCheck("event time in the future", F.struct(time) > F.struct(limit)),
    ]


def _add_verdict(
    frame: DataFrame, tests: list[RowCheck], *, raw: Column, position: Column, malformed: Column
) -> DataFrame:
    from pyspark.sql import functions as F

    def failed_names(on_fail: str, *, also: Column | None = None) -> Column:
        found = [F.when(test.failed, F.lit(test.name)) for test in tests if test.on_fail == on_fail]
        names = F.array_compact(F.array(*found)) if found else F.array().cast("array<string>")
        # A malformed record's fields mean nothing: it has that one reason.
        return F.when(malformed, also if also is not None else F.array().cast("array<string>")).otherwise(names)

    stops = [test for test in tests if test.on_fail == "stop"]
    for test in stops:
        told = F.concat(F.lit(f"{test.name} failed, and its on_fail is stop: "), raw)
        stop = F.when(~malformed & test.failed, F.raise_error(told).cast("boolean")).otherwise(F.lit(True))
        frame = frame.where(stop)
    said = [test for test in tests if test.on_fail != "stop"]
    anything, bad = malformed, malformed
    for test in said:
        anything = anything | test.failed
        bad = bad if test.on_fail == "warn" else bad | test.failed
    verdict = F.struct(
        bad.alias("bad"),
        failed_names("quarantine", also=F.array(F.lit("malformed"))).alias("refused"),
        failed_names("drop").alias("dropped"),
        failed_names("warn").alias("warned"),
        raw.alias("raw"),
        position.alias("position"),
    )
    return frame.withColumn(VERDICT, F.when(anything, verdict))
