"""Read options like Spark: their names are case-insensitive."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.config.models import Setting


def option(options: Mapping[str, Setting], *names: str) -> str | None:
    """Return the value of the first of these options that is set, as text; None if none is set."""
    given = {key.lower(): value for key, value in options.items()}
    values = (given[name.lower()] for name in names if name.lower() in given)
    return next((str(value) for value in values), None)


def is_true(options: Mapping[str, Setting], name: str) -> bool:
    """Return whether the option is set to true."""
    return (option(options, name) or "").lower() == "true"


def encoding_of(options: Mapping[str, Setting]) -> str | None:
    """Return the declared encoding of the records; None for UTF-8, which is the default."""
    encoding = option(options, "encoding", "charset")
    return None if encoding is None or encoding.upper() == "UTF-8" else encoding
