"""Locations of keys, key paths as text, and suggestions for unknown names."""

from __future__ import annotations

import pytest

from headrace.config.locations import KeyLocations, KeyPath, describe_path, fix_for_unknown_name, line_order


def test_absent_key_has_the_location_of_its_nearest_ancestor() -> None:
    locations = KeyLocations("conf/a.yml", {(): 1, ("steps",): 2, ("steps", "a"): 3, ("steps", "a", "writes", 0): 5})
    assert locations.where("steps", "a", "reads", "b") == "conf/a.yml:3"
    assert locations.where("steps", "a", "writes", 0, "mode") == "conf/a.yml:5"
    assert locations.where("other") == "conf/a.yml:1"
    assert KeyLocations("conf/b.yml").where("steps") == "conf/b.yml"


@pytest.mark.parametrize(
    ("path", "text"),
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
def test_key_path_as_text(path: KeyPath, text: str) -> None:
    assert describe_path(path) == text


def test_suggestion_for_an_unknown_name() -> None:
    assert fix_for_unknown_name("bronze_order", ["bronze_orders", "silver_orders"]) == "did you mean 'bronze_orders'?"
    assert fix_for_unknown_name("x", ["b", "a"]) == "use one of: a, b"
    assert fix_for_unknown_name("x", ["a"]) == "use 'a'"
    assert fix_for_unknown_name("x", ["b", "a"], "add it") == "add it"
    assert fix_for_unknown_name("x", []) == "remove it"


def test_problems_are_sorted_by_line_number() -> None:
    assert sorted(["b.yml:2", "a.yml:10", "a.yml:9", "a.yml"], key=line_order) == [
        "a.yml",
        "a.yml:9",
        "a.yml:10",
        "b.yml:2",
    ]
