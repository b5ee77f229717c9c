"""Look up options of Spark's readers, whose names are case-insensitive."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.config.models import Setting


def option(options: Mapping[str, Setting], *names: str) -> str | None:
    """Return the value, as text, of the first option in `names` that is set; None if no option is set."""
    values = {key.lower(): value for key, value in options.items()}
    for name in names:
        if name.lower() in values:
            return str(values[name.lower()])
    return None


def is_true(options: Mapping[str, Setting], name: str) -> bool:
    """Return whether the option is set to true; False if it is not set."""
    return (option(options, name) or "").lower() == "true"


def encoding_of(options: Mapping[str, Setting]) -> str | None:
    """Return the encoding that the options declare; None if they declare none, or UTF-8, which is the default."""
    encoding = option(options, "encoding", "charset")
    return None if encoding is None or encoding.upper() == "UTF-8" else encoding
