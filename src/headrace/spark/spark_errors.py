"""Convert Spark's errors to Headrace's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headrace.errors import ConfigurationError, HeadraceError, one_line


@contextmanager
def configuration_errors(what: str) -> Iterator[None]:
    """Convert Spark's errors in this block, for example about an unknown column, to ConfigurationError.

    `what` names the setting that caused the error; the message begins with it. A HeadraceError is not converted.
    """
    try:
        yield
    except HeadraceError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"{what} cannot be applied: {one_line(error)}", fix=f"correct the columns and values in {what}"
        ) from error
