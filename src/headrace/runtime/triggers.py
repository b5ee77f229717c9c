"""Triggers: the options of Spark for each trigger, and which triggers are bounded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.config.models import Every, Trigger

CONTINUOUS_BATCHES: Trigger = "default"  # Spark's default trigger: a batch starts as soon as the previous one has ended
TRIGGERS: dict[str, Mapping[str, Any]] = {
    "available_now": {"availableNow": True},
    "once": {"once": True},
    "default": {"processingTime": "0 seconds"},
}


def is_bounded(trigger: Trigger) -> bool:
    """Return whether a step with this trigger ends by itself when it has processed the available data.

    If not, the step runs until it is stopped.
    """
    return trigger in ("available_now", "once")


def trigger_options(trigger: Trigger) -> Mapping[str, Any]:
    """Return the keyword arguments of `DataStreamWriter.trigger`."""
    return {"processingTime": trigger.every} if isinstance(trigger, Every) else TRIGGERS[trigger]
