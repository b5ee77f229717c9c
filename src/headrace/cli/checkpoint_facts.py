"""What `headrace checkpoint` prints of a step, with the keys of the JSON output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.config.models import Bundle
    from headrace.runtime.change_guard import StepChanges


def checkpoint_facts(
    bundle: Bundle, pipeline: str, step: str, spark: SparkSession | None, *, with_details: bool = False
) -> dict[str, Any]:
    """Return facts about a step's checkpoint.

    With `with_details`, add its directory, and the start, the tables and the settings that are recorded in it.
    """
    from headrace.runtime.step_checkpoint import open_checkpoint

    current = open_checkpoint(bundle, pipeline, step, spark)
    content = current.read()
    facts: dict[str, Any] = {
        "step": f"{pipeline}/{step}",
        "generation": current.generation.number,
        "completed": content.last_completed,
        "query": content.query_id,
        "damaged": list(content.damage),
    }
    if with_details:
        record = current.read_record()
        facts["directory"] = current.spark_directory
        facts["started at"] = record.started_at if record else ""
        facts["tables"] = record.tables if record else {}
        facts["settings"] = dict(content.settings)
    return facts


def difference_facts(step: str, found: StepChanges | None) -> dict[str, Any]:
    """Return how a step differs from the query that wrote its checkpoint. `found` is None if it has no batch."""
    from headrace.signatures.changes import can_be_accepted

    if found is None:
        return {"step": step, "result": "has no checkpoint with a batch", "changes": [], "accept": ""}
    changes = [{"verdict": each.verdict.value, "change": each.sentence} for each in found.changes]
    unchanged = found.note or "unchanged"
    result = "does not start" if found.refused else "starts" if changes else unchanged
    accept = found.digest if found.refused and can_be_accepted(found.refused) else ""
    return {"step": step, "result": result, "changes": changes, "accept": accept}
