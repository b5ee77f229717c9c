"""Check rows, and carry the result along with each row.

A checked row has a column `_headrace`, the verdict: null for a row that passed everything, otherwise the names of the
failed checks, the raw record and its position. Bad rows keep no event time, so they can never move a watermark.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from headrace.config.models import Read, Rule, Step, milliseconds
from headrace.expectations.row_checks import (
    RowCheck,
    batch_checks,
    check_names,
    require_compatible_values,
    row_checks,
    rule_columns,
)
from headrace.spark.columns import quote_name, require_columns
from headrace.spark.spark_errors import configuration_errors

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Columns of rows from a source, next to the source's own columns.
RAW, POSITION, MALFORMED = "_headrace_raw", "_headrace_position", "_headrace_malformed"
SOURCE_COLUMNS = (RAW, POSITION, MALFORMED)
VERDICT = "_headrace"
BAD_ROW_KEY = "_headrace_unique"
BATCH_CHECK = "_headrace_check_"


def check_source_rows(frame: DataFrame, read: Read) -> DataFrame:
    """Return the rows of a source with their verdict, instead of the columns about the raw record."""
    from pyspark.sql import functions as F

    data = frame.drop(*SOURCE_COLUMNS)

    def source_column(name: str, default: Column) -> Column:
        return F.col(name) if name in frame.columns else default

    require_columns(data, "the watermark", [read.watermark.column] if read.watermark else [])
    require_columns(data, "expect", rule_columns(read.expect))
    require_compatible_values(frame, read.expect)
    with configuration_errors("expect"):
        checked = _add_verdict(
            frame,
            [*_event_time_checks(read), *row_checks(read.expect)],
            raw=source_column(RAW, F.to_json(F.struct(*map(quote_name, data.columns)))),
            position=source_column(POSITION, F.lit(None).cast("string")),
            malformed=source_column(MALFORMED, F.lit(False)),
        )
    if read.watermark is not None:
        event_time = read.watermark.column
        checked = checked.withColumn(event_time, F.when(~is_bad(), F.col(event_time)))
    return checked.select(*map(quote_name, data.columns), VERDICT)


def check_result_rows(frame: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Return the rows that a step is about to write, with their verdict if there are rules."""
    from pyspark.sql import functions as F

    if not rules:
        return frame
    require_columns(frame, "expect", rule_columns(rules))
    with configuration_errors("expect"):
        raw = F.to_json(F.struct(*map(quote_name, frame.columns)))
        checks = row_checks(rules)
        checked = frame
        for number, check in enumerate(batch_checks(rules)):
            # Good rows first: a bad row must not be the copy that stays. Then any order that a repetition has as well.
            failed = check.failed([reduce(or_, map(_keeps_out, checks), F.lit(False)), raw])
            column = f"{BATCH_CHECK}{number}"
            checked = checked.withColumn(column, failed)
            checks = [*checks, RowCheck(check.name, F.col(column), check.on_fail)]
        checked = _add_verdict(checked, checks, raw=raw, position=F.lit(None).cast("string"), malformed=F.lit(False))
        return checked.select(*map(quote_name, frame.columns), VERDICT)


def _keeps_out(check: RowCheck) -> Column:
    """Return the column that is true for rows that the check keeps out of the table."""
    from pyspark.sql import functions as F

    return F.lit(False) if check.on_fail == "warn" else check.failed


def is_bad() -> Column:
    """Return a column that is true for rows that must not reach the table."""
    from pyspark.sql import functions as F

    return F.coalesce(F.col(f"{VERDICT}.bad"), F.lit(False))


def key_bad_rows(frame: DataFrame) -> DataFrame:
    """Give each bad row a unique key. Deduplication by this key too never drops a bad row."""
    from pyspark.sql import functions as F

    return frame.withColumn(BAD_ROW_KEY, F.when(is_bad(), F.reflect(F.lit("java.util.UUID"), F.lit("randomUUID"))))


def has_verdict(frame: DataFrame) -> bool:
    """Return whether the rows carry a verdict."""
    return VERDICT in frame.columns


def rule_names(step: Step) -> list[str]:
    """Return the names of all checks of a step, under which its failed rows are counted."""
    rules = [rule for read in step.reads.values() for rule in read.expect] + list(step.expect)
    return ["malformed", "event time missing", "event time in the future", *check_names(rules)]


def _event_time_checks(read: Read) -> list[RowCheck]:
    from pyspark.sql import functions as F

    if read.watermark is None:
        return []
    event_time = F.col(read.watermark.column)
    limit = F.current_timestamp() + F.make_dt_interval(secs=F.lit(milliseconds(read.max_future) / 1000))
    return [
        RowCheck("event time missing", event_time.isNull()),
        RowCheck("event time in the future", F.struct(event_time) > F.struct(limit)),
    ]


def _add_verdict(
    frame: DataFrame, checks: list[RowCheck], *, raw: Column, position: Column, malformed: Column
) -> DataFrame:
    from pyspark.sql import functions as F

    no_names = F.array().cast("array<string>")

    def failed_names(on_fail: str, *, if_malformed: Column = no_names) -> Column:
        names = [F.when(check.failed, F.lit(check.name)) for check in checks if check.on_fail == on_fail]
        # The fields of a malformed record mean nothing, so it gets no other reason.
        return F.when(malformed, if_malformed).otherwise(F.array_compact(F.array(*names)) if names else no_names)

    for check in (check for check in checks if check.on_fail == "stop"):
        message = F.concat(F.lit(f"{check.name} failed, and its on_fail is stop: "), raw)
        stop = F.when(~malformed & check.failed, F.raise_error(message).cast("boolean")).otherwise(F.lit(True))
        frame = frame.where(stop)
    failed, bad = malformed, malformed
    for check in (check for check in checks if check.on_fail != "stop"):
        failed = failed | check.failed
        bad = bad | _keeps_out(check)
    verdict = F.struct(
        bad.alias("bad"),
        failed_names("quarantine", if_malformed=F.array(F.lit("malformed"))).alias("quarantined"),
        failed_names("drop").alias("dropped"),
        failed_names("warn").alias("warned"),
        raw.alias("raw"),
        position.alias("position"),
    )
    return frame.withColumn(VERDICT, F.when(failed, verdict))
