"""Decide which inputs have their rows checked, which steps can check them, and which steps have a quarantine."""

from __future__ import annotations

from headrace.config.models import Environment, Read, Step

DEDUPLICATE = "headrace.transforms.bronze:deduplicate"
PARSED_FORMATS = ("json", "csv", "xml")
QUARANTINE_SUFFIX = "_quarantine"


def checks_source_rows(read: Read, environment: Environment) -> bool:
    """Return whether Headrace checks the rows of an input.

    The rows of a source are checked if its records are parsed, or if the input has a watermark or expectations. The
    rows of a table are not checked when they are read.
    """
    if read.source is None:
        return False
    source = environment.sources.get(read.source)
    record_format = getattr(source, "format", None)
    return record_format in PARSED_FORMATS or read.watermark is not None or bool(read.expect)


def can_check_rows(step: Step) -> bool:
    """Return whether the step can check the rows of a source.

    To check rows, bad rows must be able to bypass the step's transform without changing its result for good rows.
    """
    streams = [read for read in step.reads.values() if not read.static]
    return len(streams) == 1 and (step.transform is None or deduplicates(step) or step.row_wise)


def deduplicates(step: Step) -> bool:
    """Return whether the step's transform only removes duplicate rows: those with equal values in the columns `keys`.

    This holds for the built-in `deduplicate`, and for custom transforms in steps with `deduplicates: true`.
    """
    return step.deduplicates or step.transform == DEDUPLICATE


def has_quarantine(step: Step, environment: Environment) -> bool:
    """Return whether the step has a quarantine table, next to the first table that it writes.

    A step that writes no table cannot have one: if this function returns True for such a step, the step is invalid.
    """
    rules = [*step.expect, *(rule for read in step.reads.values() for rule in read.expect)]
    # Checked source rows may be quarantined without a rule: malformed records, and event times that are not valid.
    checks_rows = any(checks_source_rows(read, environment) for read in step.reads.values())
    return checks_rows or any(rule.on_fail == "quarantine" for rule in rules)
