"""Triggers: the options that Spark takes, and which of them end by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.config.models import Every, Trigger

if TYPE_CHECKING:
    pass


TRIGGERS: dict[str, Mapping[str, Any]] = {
    "available_now": {"availableNow": True},
    "once": {"once": True},
    "default": {"processingTime": "0 seconds"},
}


def is_bounded(trigger: Trigger) -> bool:
    """Whether a step with this trigger ends by itself."""
    return trigger in ("available_now", "once")


def trigger_options(trigger: Trigger) -> Mapping[str, Any]:
    return {"processingTime": trigger.every} if isinstance(trigger, Every) else TRIGGERS[trigger]
