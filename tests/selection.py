"""Select which cases of a parametrised test run without --full."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest


def mostly_full(cases: Mapping[str, Any] | Iterable[Any], *quick: Any) -> list[Any]:
    """Return the cases for `parametrize`, with the mark `full` for all but the quick ones.

    A mapping has the arguments of each case by its id; `quick` are then ids. Otherwise, `quick` are cases themselves.
    """
    if isinstance(cases, Mapping):
        return [
            pytest.param(
                *(arguments if isinstance(arguments, tuple) else (arguments,)),
                id=name,
                marks=() if name in quick else pytest.mark.full,
            )
            for name, arguments in cases.items()
        ]
    return [case if case in quick else pytest.param(case, marks=pytest.mark.full) for case in cases]
