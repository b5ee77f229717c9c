"""What each kind of rule means: the rows that fail it."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from headrace.config.models import Rule
from headrace.errors import ConfigurationError
from headrace.expectations import row_checks, verdict


def is_even():
    return F.col("n") % 2 == 0


def no_column():
    return True


def broken():
    raise RuntimeError("no such thing")


RULES = {  # with the ids of the rows that fail each one
    "not_null": ({"not_null": ["id"]}, [None]),
    "not_null of a field": ({"not_null": ["who.name"]}, ["a\nb", None]),
    "between includes both limits": ({"between": {"n": [1, 5]}}, ["ab\n", "xab"]),
    "between of dates": ({"between": {"day": ["2026-01-01", "2026-12-31"]}}, ["xab"]),
    "between of NaN": ({"between": {"x": [0, 9]}}, ["a\nb", "xab"]),
    "one_of": ({"one_of": {"n": [1, 5, 0]}}, ["ab\n"]),
    "one_of with null": ({"one_of": {"n": [1, None]}}, ["a\nb", "ab\n", "xab"]),
    "matches the whole value": ({"matches": {"id": "ab"}}, ["a\nb", "ab\n", "xab"]),
    "matches one of several patterns, whole": ({"matches": {"id": "a|ab|xa."}}, ["a\nb", "ab\n"]),
    "matches across lines only with (?s)": ({"matches": {"id": "(?s)a.b"}}, ["ab", "ab\n", "xab"]),
    "rule": ({"rule": f"{__name__}:is_even"}, ["ab", "a\nb"]),
}


@pytest.fixture(scope="module")
def failed_ids(rows):
    """The ids of the rows that fail each rule; all rules are applied in one query."""
    checks = [row_checks.row_checks([Rule(**rule)])[0] for rule, _ in RULES.values()]
    results = rows.select("id", *(check.failed.alias(str(at)) for at, check in enumerate(checks))).collect()
    return {name: [row["id"] for row in results if row[str(at)]] for at, name in enumerate(RULES)}


@pytest.mark.parametrize("name", RULES)
def test_rule_fails_these_rows_only(failed_ids, name):
    assert failed_ids[name] == RULES[name][1]


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("no_column", Rule(rule=f"{__name__}:no_column")),
        ("broken", Rule(rule=f"{__name__}:broken")),
        ("columns", Rule(not_null=["idd", "who.name", "N", "nn"])),
    ],
)
def test_invalid_rule_is_an_error(rows, golden, name, rule):
    with pytest.raises(ConfigurationError) as error:
        verdict.check_result_rows(rows, [rule])
    golden(f"quality/{name}", str(error.value).replace(__name__, "module"))
