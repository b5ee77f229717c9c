"""Steps with keys that exclude or require each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bundle_files import problems_of

WriteBundle = Callable[[Mapping[str, str | bytes | None]], Path]
INPUT = "reads: {rows: {source: ticks%s}}"
STEP = "steps: {land: {layer: bronze, %s, writes: {table: landed}%s}}"


def step(*, expect: str = "", keys: str = "") -> str:
    return STEP % (INPUT % (f", expect: [{{{expect}}}]" if expect else ""), f", {keys}" if keys else "")


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (
            step(expect="unique: [value]"),
            "step 'land', input 'rows', rule 1, unique: compares the rows of a batch, "
            "but the rows of an input are checked one by one",
        ),
        (step(keys="deduplicates: true"), "step 'land', deduplicates: the step has no transform"),
        (
            step(keys="deduplicates: true, transform: shop:latest"),
            "step 'land', deduplicates: needs the columns that identify a row, as the transform's setting 'keys'",
        ),
        (
            step(keys="deduplicates: true, row_wise: true, transform: shop:latest, with: {keys: [value]}"),
            "step 'land', row_wise: applies only to custom transforms that do not deduplicate",
        ),
    ],
    ids=["unique on an input", "no transform", "no keys", "row_wise"],
)
def test_keys_that_do_not_fit_the_step(write_bundle: WriteBundle, pipeline: str, message: str) -> None:
    assert f"Error: {message}\n" in problems_of(write_bundle({"conf/pipelines/p.yml": pipeline}))
