"""Which inputs are judged before the transform, and which steps judge rows at all."""

from __future__ import annotations

from headrace.config.models import Environment, Read, Step

DEDUPLICATE = "headrace.transforms.bronze:deduplicate"
JUDGED_FORMATS = ("json", "csv", "xml")
QUARANTINE_SUFFIX = "_quarantine"


def checks_source_rows(read: Read, environment: Environment) -> bool:
    """Whether an input is outside data whose rows can be malformed, out of time, or against its rules."""
    if read.source is None:
        return False
    source = environment.sources.get(read.source)
    form = getattr(source, "format", None)
    return form in JUDGED_FORMATS or read.watermark is not None or bool(read.expect)


def can_check_rows(step: Step) -> bool:
    """Whether bad rows can be told apart before the transform of this step without changing what it does."""
    streams = [read for read in step.reads.values() if not read.static]
    return len(streams) == 1 and (step.transform in (None, DEDUPLICATE) or step.row_wise)


def has_quarantine(step: Step, environment: Environment) -> bool:
    """Whether the step puts refused rows aside, beside the table that it writes."""
    rules = [*step.expect, *(rule for read in step.reads.values() for rule in read.expect)]
    judged = any(checks_source_rows(read, environment) for read in step.reads.values())
    return judged or any(rule.on_fail == "quarantine" for rule in rules)
