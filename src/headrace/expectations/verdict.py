"""Check rows, and keep the result of the checks in a column of each row.

A checked row has a column `_headrace`, the verdict: null for a row that passed all checks, otherwise a struct with the
names of the failed checks, the raw record and its position. A bad row is one that must not reach the step's table: it
is malformed, or failed a check whose `on_fail` is not "warn". The event time of a bad row from a source is set to null,
so that the row never moves a watermark.
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

# Columns about the raw record, which the rows of a source may have in addition to their data.
RAW = "_headrace_raw"  # the record as text
POSITION = "_headrace_position"  # the path of the record's file; for Kafka, the record's topic, partition and offset
MALFORMED = "_headrace_malformed"  # whether the record cannot be decoded or parsed
SOURCE_COLUMNS = (RAW, POSITION, MALFORMED)
VERDICT = "_headrace"
BAD_ROW_KEY = "_headrace_unique"  # see `key_bad_rows`
BATCH_CHECK_PREFIX = "_headrace_check_"  # followed by the number of the check


def check_source_rows(frame: DataFrame, read: Read) -> DataFrame:
    """Return the rows of a source with their verdict, and without the columns about the raw record.

    In bad rows, the column of the watermark is set to null. Raise ConfigurationError if the rules or the watermark do
    not fit the rows.
    """
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
    """Return the rows that a step is about to write, with their verdict; unchanged if there are no rules.

    Raise ConfigurationError if the rules name unknown columns or cannot be applied.
    """
    from pyspark.sql import functions as F

    if not rules:
        return frame
    require_columns(frame, "expect", rule_columns(rules))
    with configuration_errors("expect"):
        raw = F.to_json(F.struct(*map(quote_name, frame.columns)))
        checks = row_checks(rules)
        checked = frame
        for number, check in enumerate(batch_checks(rules)):
            # Sort good rows first: of several equal rows, the first one passes, which must not be a bad row. Then sort
            # by content, so that a repeated batch gives the same result.
            is_bad_so_far = reduce(or_, map(_is_kept_out, checks), F.lit(False))
            failed = check.failed([is_bad_so_far, raw])
            column = f"{BATCH_CHECK_PREFIX}{number}"
            checked = checked.withColumn(column, failed)
            checks = [*checks, RowCheck(check.name, F.col(column), check.on_fail)]
        checked = _add_verdict(checked, checks, raw=raw, position=F.lit(None).cast("string"), malformed=F.lit(False))
        return checked.select(*map(quote_name, frame.columns), VERDICT)


def _is_kept_out(check: RowCheck) -> Column:
    """Return a column that is true for rows that the check keeps out of the table."""
    from pyspark.sql import functions as F

    return F.lit(False) if check.on_fail == "warn" else check.failed


def is_bad() -> Column:
    """Return a column that is true for bad rows. The rows need a verdict."""
    from pyspark.sql import functions as F

    return F.coalesce(F.col(f"{VERDICT}.bad"), F.lit(False))


def key_bad_rows(frame: DataFrame) -> DataFrame:
    """Add the column BAD_ROW_KEY: a unique key for each bad row, null for each good row.

    A deduplication that has this column among its keys drops no bad row.
    """
    from pyspark.sql import functions as F

    return frame.withColumn(BAD_ROW_KEY, F.when(is_bad(), F.reflect(F.lit("java.util.UUID"), F.lit("randomUUID"))))


def has_verdict(frame: DataFrame) -> bool:
    """Return whether the rows carry a verdict."""
    return VERDICT in frame.columns


def check_names_of_step(step: Step) -> list[str]:
    """Return the names of all checks of a step, which are the keys of its counts of failed rows."""
    rules = [rule for read in step.reads.values() for rule in read.expect] + list(step.expect)
    return ["malformed", "event time missing", "event time in the future", *check_names(rules)]


def _event_time_checks(read: Read) -> list[RowCheck]:
    """Return the checks of the watermark's column; none if the input has no watermark."""
    from pyspark.sql import functions as F

    if read.watermark is None:
        return []
    event_time = F.col(read.watermark.column)
    limit = F.current_timestamp() + F.make_dt_interval(secs=F.lit(milliseconds(read.max_future) / 1000))
    return [
        RowCheck("event time missing", event_time.isNull()),
        # As structs, a missing event time and the limit compare as false. Without structs, the result would be null.
        RowCheck("event time in the future", F.struct(event_time) > F.struct(limit)),
    ]


def _add_verdict(
    frame: DataFrame, checks: list[RowCheck], *, raw: Column, position: Column, malformed: Column
) -> DataFrame:
    """Add the column with the verdict. A row that fails a check with `on_fail: stop` raises an error in Spark."""
    from pyspark.sql import functions as F

    no_names = F.array().cast("array<string>")

    def failed_names(on_fail: str, *, if_malformed: Column = no_names) -> Column:
        """Return the names of the failed checks with this `on_fail`; for a malformed record, return `if_malformed`."""
        names = [F.when(check.failed, F.lit(check.name)) for check in checks if check.on_fail == on_fail]
        # The fields of a malformed record are meaningless, so its failures of other checks do not count.
        return F.when(malformed, if_malformed).otherwise(F.array_compact(F.array(*names)) if names else no_names)

    stopping_checks = [check for check in checks if check.on_fail == "stop"]
    for check in stopping_checks:
        message = F.concat(F.lit(f"{check.name} failed, and its on_fail is stop: "), raw)
        true_or_error = F.when(~malformed & check.failed, F.raise_error(message).cast("boolean")).otherwise(F.lit(True))
        frame = frame.where(true_or_error)
    failed, bad = malformed, malformed
    other_checks = [check for check in checks if check.on_fail != "stop"]
    for check in other_checks:
        failed = failed | check.failed
        bad = bad | _is_kept_out(check)
    verdict = F.struct(
        bad.alias("bad"),
        failed_names("quarantine", if_malformed=F.array(F.lit("malformed"))).alias("quarantined"),
        failed_names("drop").alias("dropped"),
        failed_names("warn").alias("warned"),
        raw.alias("raw"),
        position.alias("position"),
    )
    return frame.withColumn(VERDICT, F.when(failed, verdict))
