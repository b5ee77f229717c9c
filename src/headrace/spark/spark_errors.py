"""Convert Spark's errors to Headrace's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headrace.errors import ConfigurationError, HeadraceError, one_line


@contextmanager
def configuration_errors(what: str) -> Iterator[None]:
    """Convert errors raised in this block, such as unknown columns, to a ConfigurationError about `what`."""
    try:
        yield
    except HeadraceError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"{what} cannot be applied: {one_line(error)}", fix="correct the columns and values that it names"
        ) from error
