"""Files that the first version of each format wrote are still readable."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from headrace.config.load import read_bundle
from headrace.deploy.deploy_state import State
from headrace.release.manifest import MANIFEST, Manifest
from headrace.release.releases import Release, require_intact
from headrace.runtime.events import events_file, read_events
from headrace.runtime.run_status import status_of

FIRST_FORMAT = Path(__file__).parent / "fixtures" / "format_1"
RELEASE = FIRST_FORMAT / "release" / "cdad62e85973"


def test_events(tmp_path: Path) -> None:
    file = events_file(tmp_path, "orders")
    file.parent.mkdir(parents=True)
    shutil.copy(FIRST_FORMAT / "events.jsonl", file)
    records = [json.loads(line) for line in file.read_text().splitlines()]
    events = list(read_events(tmp_path, "orders"))
    assert [(event.version, event.what, event.step, event.rows) for event in events] == [
        (1, record["what"], record["step"], record["rows"]) for record in records
    ]
    bronze = next(event for event in events if event.step == "bronze_orders" and event.what == "batch")
    old = next(record for record in records if record["step"] == "bronze_orders" and record["what"] == "batch")
    assert bronze.quarantined == old["refused"] != {}
    assert bronze.lag == {"": old["behind"]}
    status = status_of(tmp_path, "orders", ["bronze_orders"])
    assert status.description.startswith("run ended at ")
    assert status.steps[0].quarantined == old["refused"]


def test_state_of_a_deployment() -> None:
    state = State.from_json((FIRST_FORMAT / "state.json").read_text())
    assert (state.release, sorted(state.jobs)) == ("cdad62e85973", ["live", "nightly"])
    assert [(entry.command, entry.release, entry.outcome) for entry in state.history] == [
        ("deploy", "903ddb0f633a", "done"),
        ("deploy", "cdad62e85973", "done"),
    ]


def test_release() -> None:
    manifest = Manifest.from_json((RELEASE / MANIFEST).read_text())
    require_intact(Release(RELEASE, manifest))
    draft = read_bundle(RELEASE, ["staging"])
    assert sorted(pipeline.name for pipeline in draft.pipelines) == ["p", "q"]
    assert [problem.message.partition("has runtime")[2] for problem in draft.problems] == [
        " 17.3.x-scala2.13, whose Spark is older than those that Headrace works with (4.1 to 4.2)"
    ] * 2, "apart from its runtime, which that version accepted, the configuration is valid"
