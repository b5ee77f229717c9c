"""Judges rows: which are refused and why, which are dropped, which only get a remark.

A judged row carries one column, `_headrace`: null for a row that nothing was said of, else what was said, the raw
record and where it came from. Refused rows keep no event time, so that they can never move a watermark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.config.locate import nearest
from headrace.config.models import Read, Rule, Step, milliseconds
from headrace.errors import ConfigurationError, HeadraceError, Problem, in_a_line
from headrace.graph import resolve

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

RAW, POSITION, MALFORMED = "_raw", "_position", "_malformed"
ARRIVAL = (RAW, POSITION, MALFORMED)
VERDICT = "_headrace"
UNIQUE = "_headrace_unique"


@dataclass(frozen=True)
class Test:
    """One question asked of each row; `failed` is true for a row that does not pass."""

    name: str
    failed: Column
    on_fail: str = "quarantine"


def judge_arrivals(frame: DataFrame, read: Read) -> DataFrame:
    """Judges rows of an outside source; what it adds is only the verdict."""
    from pyspark.sql import functions as F

    kept = [name for name in frame.columns if name not in ARRIVAL]

    def arrival(name: str, otherwise: Column) -> Column:
        return F.col(name) if name in frame.columns else otherwise

    require_columns(frame, "the watermark", [read.watermark.column] if read.watermark else [])
    require_columns(frame, "expect", _columns(read.expect))
    require_fitting(frame, read.expect)
    with told("expect"):
        judged = _judge(
            frame,
            [*_event_time_tests(read), *rule_tests(read.expect)],
            raw=arrival(RAW, F.to_json(F.struct(*kept))),
            position=arrival(POSITION, F.lit(None).cast("string")),
            malformed=arrival(MALFORMED, F.lit(False)),
        )
    if read.watermark is not None:
        time = read.watermark.column
        judged = judged.withColumn(time, F.when(~is_bad(), F.col(time)))
    return judged.select(*kept, VERDICT)


def judge_result(frame: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Judges the rows that a transform returned."""
    from pyspark.sql import functions as F

    require_columns(frame, "expect", _columns(rules))
    with told("expect"):
        tests = rule_tests(rules)
        if not tests:
            return frame
        columns = [name for name in frame.columns if name != VERDICT]
        raw = F.to_json(F.struct(*columns))
        return _judge(frame, tests, raw=raw, position=F.lit(None).cast("string"), malformed=F.lit(False))


@contextmanager
def told(what: str) -> Iterator[None]:
    """Says of which part of the configuration Spark complains: a column that is not there, a rule that raises."""
    try:
        yield
    except HeadraceError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"{what} cannot be applied: {in_a_line(error)}", fix="correct the columns and values that it names"
        ) from error


def require_columns(frame: DataFrame, what: str, wanted: Iterable[str]) -> None:
    """Raises all columns that the frame lacks; of `person.name` the frame has to have `person`."""
    own = [name for name in frame.columns if name not in (RAW, POSITION, MALFORMED, VERDICT)]
    known = {name.lower() for name in own}
    missing = [column for column in wanted if column.partition(".")[0].strip("`").lower() not in known]
    if missing:
        raise ConfigurationError.of(
            Problem("", f"{what} names a column {column!r} that is not there", nearest(column, own))
            for column in dict.fromkeys(missing)
        )


def require_fitting(frame: DataFrame, rules: Iterable[Rule]) -> None:
    """Raises what would fail in a batch: values of another kind than their column, patterns that Java cannot read."""
    problems: list[Problem] = []
    for rule in rules:
        for kind, chosen in (("between", rule.between), ("one_of", rule.one_of)):
            for column, values in (chosen or {}).items():
                with told("expect"):
                    (field,) = frame.select(column).schema.fields
                if wrong := _of_another_kind(field.dataType, values):
                    message = f"{kind} compares {column!r}, which is {field.dataType.simpleString()}, with {wrong[0]!r}"
                    problems.append(Problem("", message, f"write {wrong[1]}, or cast the column in a transform"))
        for column, pattern in (rule.matches or {}).items():
            if said := _unreadable(frame, pattern):
                fix = "write it as Java's regular expressions are written"
                problems.append(Problem("", f"matches {column!r}: {pattern!r} cannot be read: {said}", fix))
    if problems:
        raise ConfigurationError.of(problems)


def _of_another_kind(column: DataType, values: Iterable[Any]) -> tuple[Any, str] | None:
    """A value that Spark would cast the column to row by row, and fail; what to write instead."""
    from pyspark.sql.types import NumericType, StringType

    for kind, cast, instead in ((StringType, (int, float), "text, in quotes"), (NumericType, str, "numbers")):
        wrong = [value for value in values if isinstance(column, kind) and isinstance(value, cast)]
        if wrong:
            return wrong[0], instead
    return None


def _unreadable(frame: DataFrame, pattern: str) -> str:
    """What Java says of a pattern that is none; nothing where there is no way to Java."""
    jvm = getattr(frame.sparkSession, "_jvm", None)
    try:
        if jvm is not None:
            jvm.java.util.regex.Pattern.compile(pattern)
    except Exception as error:
        return in_a_line(error)
    return ""


def is_bad() -> Column:
    """True for a row that must not reach the table."""
    from pyspark.sql import functions as F

    return F.coalesce(F.col(f"{VERDICT}.bad"), F.lit(False))


def let_through(frame: DataFrame) -> DataFrame:
    """Gives each bad row a key of its own, so that deduplication passes it on."""
    from pyspark.sql import functions as F

    return frame.withColumn(UNIQUE, F.when(is_bad(), F.reflect(F.lit("java.util.UUID"), F.lit("randomUUID"))))


def is_judged(frame: DataFrame) -> bool:
    """Whether the rows carry a verdict."""
    return VERDICT in frame.columns


def rule_names(step: Step) -> list[str]:
    """The names under which a step's refusals can be counted."""
    rules = [rule for read in step.reads.values() for rule in read.expect] + list(step.expect)
    return [
        "malformed",
        "event time missing",
        "event time in the future",
        *(n for rule in rules for n in _names(rule)),
    ]


def rule_tests(rules: Iterable[Rule]) -> list[Test]:
    """The tests that the `expect` entries ask for."""
    return [test for rule in rules for test in _tests(rule)]


def _event_time_tests(read: Read) -> list[Test]:
    from pyspark.sql import functions as F

    if read.watermark is None:
        return []
    time = F.col(read.watermark.column)
    limit = F.current_timestamp() + F.make_dt_interval(secs=F.lit(milliseconds(read.max_future) / 1000))
    return [
        Test("event time missing", time.isNull()),
        Test("event time in the future", F.struct(time) > F.struct(limit)),
    ]


def _names(rule: Rule) -> list[str]:
    if rule.not_null is not None:
        return [f"not_null {column}" for column in rule.not_null]
    if rule.between is not None:
        return [f"between {column} {low} and {high}" for column, (low, high) in rule.between.items()]
    if rule.one_of is not None:
        return [f"one_of {column}" for column in rule.one_of]
    if rule.matches is not None:
        return [f"matches {column}" for column in rule.matches]
    assert rule.rule is not None
    return [f"rule {rule.rule.rpartition(':')[2]}"]


def _columns(rules: Iterable[Rule]) -> Iterator[str]:
    for rule in rules:
        for named in (rule.not_null, rule.between, rule.one_of, rule.matches):
            yield from named or ()


def _tests(rule: Rule) -> list[Test]:
    from pyspark.sql import Column
    from pyspark.sql import functions as F

    if rule.not_null is not None:
        failed = [F.col(column).isNull() for column in rule.not_null]
    elif rule.between is not None:
        failed = [~F.col(column).between(low, high) for column, (low, high) in rule.between.items()]
    elif rule.one_of is not None:
        failed = [~F.col(column).isin(*values) for column, values in rule.one_of.items()]
    elif rule.matches is not None:
        # Java's $ also stands before a last line break.
        failed = [~F.col(column).rlike(rf"\A(?:{pattern})\z") for column, pattern in rule.matches.items()]
    else:
        assert rule.rule is not None
        passed = resolve(rule.rule)()
        if not isinstance(passed, Column):
            raise ConfigurationError(
                f"rule {rule.rule} returned a {type(passed).__name__}",
                fix="return a Column that is true for a good row",
            )
        failed = [~passed]
    # Only not_null fails on null: an unknown answer is no failure.
    return [
        Test(name, F.coalesce(test, F.lit(False)), rule.on_fail)
        for name, test in zip(_names(rule), failed, strict=True)
    ]


def _judge(frame: DataFrame, tests: list[Test], *, raw: Column, position: Column, malformed: Column) -> DataFrame:
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
    judged = F.when(anything, verdict)
    if VERDICT in frame.columns:
        judged = F.coalesce(F.col(VERDICT), judged)
    return frame.withColumn(VERDICT, judged)
