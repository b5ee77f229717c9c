"""Convert errors of Spark into ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headrace.errors import ConfigurationError, HeadraceError, one_line

if TYPE_CHECKING:
    pass


@contextmanager
def configuration_errors(what: str) -> Iterator[None]:
    """Says of which part of the configuration Spark complains: a column that is not there, a rule that raises."""
    try:
        yield
    except HeadraceError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"{what} cannot be applied: {one_line(error)}", fix="correct the columns and values that it names"
        ) from error
