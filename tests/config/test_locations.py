"""Keys and where they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.config.document import parse_scalar, read_document
from headrace.config.locations import KeyLocations, KeyPath, closest_match, describe_path, line_order

REPOSITORY = Path(__file__).parents[2]
FILES = sorted(path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "conf").rglob("*.yml"))


@pytest.mark.parametrize("file", [*FILES, "databricks.yml", "resources/orders.job.yml"])
def test_each_key_is_found_on_the_line_that_holds_it(file: str) -> None:
    lines = read_document(REPOSITORY / file, file, strict=False).locations
    text = (REPOSITORY / file).read_text().splitlines()
    keys = {path: line for path, line in lines.lines.items() if path and isinstance(path[-1], str)}
    assert keys
    for path, line in keys.items():
        assert f"{path[-1]}:" in text[line - 1]
        assert lines.where(*path) == f"{file}:{line}"


def test_a_key_that_is_not_written_is_at_what_holds_it() -> None:
    lines = KeyLocations("conf/a.yml", {(): 1, ("steps",): 2, ("steps", "a"): 3, ("steps", "a", "writes", 0): 5})
    assert lines.where("steps", "a", "reads", "b") == "conf/a.yml:3"
    assert lines.where("steps", "a", "writes", 0, "mode") == "conf/a.yml:5"
    assert lines.where("other") == "conf/a.yml:1"
    assert KeyLocations("conf/b.yml").where("steps") == "conf/b.yml"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ((), ""),
        (("tables",), "tables"),
        (("steps", "a"), "step 'a'"),
        (("steps", "a", "reads", "b", "watermark", "delay"), "step 'a', input 'b', watermark, delay"),
        (("steps", "reads", "reads", "reads", "schema"), "step 'reads', input 'reads', schema"),
        (("steps", "a", "expect", 0, "between", "c"), "step 'a', rule 1, between, c"),
        (("steps", "a", "writes", 1, "keys", 0), "step 'a', sink 2, keys, entry 1"),
        (("triggers", "a", "every"), "trigger of 'a', every"),
    ],
)
def test_a_path_in_words(path: KeyPath, words: str) -> None:
    assert describe_path(path) == words


def test_the_nearest_word() -> None:
    assert closest_match("bronze_order", ["bronze_orders", "silver_orders"]) == "did you mean 'bronze_orders'?"
    assert closest_match("x", ["b", "a"]) == "known here: a, b"
    assert closest_match("x", ["b", "a"], "add it") == "add it"
    assert closest_match("x", []) == "take it out"


def test_lines_are_ordered_as_numbers() -> None:
    assert sorted(["b.yml:2", "a.yml:10", "a.yml:9", "a.yml"], key=line_order) == [
        "a.yml",
        "a.yml:9",
        "a.yml:10",
        "b.yml:2",
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None), ("~", None), ("null", None), ("true", True), ("FALSE", False), ("tRue", "tRue"),
        ("12", 12), ("-1", -1), ("+7", 7), ("0o17", 15), ("0x1F", 31), ("1.5", 1.5), ("1e3", 1000.0), (".5", 0.5),
        ("2024-01-01", "2024-01-01"), ("2g", "2g"), ("1.2.3", "1.2.3"), ("yes", "yes"), ("010", 10),
        (".inf", float("inf")), ("-.INF", float("-inf")), ("9" * 5000, float("inf")), ("=", "="),
    ],
)  # fmt: skip
def test_plain_scalars_are_read_as_yaml_1_2_says(text: str, value: object) -> None:
    found = parse_scalar(text)
    assert found == value
    assert type(found) is type(value)
