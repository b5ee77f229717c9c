"""After an upgrade, the signature of the last start is recomputed from the release that started the step."""

from __future__ import annotations

import json
import shutil
import sys
import zipfile
from textwrap import dedent

import pytest

from headrace.config.load import load_bundle
from headrace.errors import GuardError
from headrace.runtime import runner
from headrace.runtime.events import read_events

PIPELINE = """\
steps:
  land:
    layer: bronze
    reads: {rows: {source: rows, schema: "id STRING, n INT, at TIMESTAMP", watermark: {column: at, delay: 1 minute}}}
    transform: upgraded_code.steps:land
    with: {keys: [id], add: 1}
    deduplicates: true
    writes: {table: landed}
"""
CODE = """\
def land(rows, /, *, keys, add):
    return rows.dropDuplicates([*keys, "at"]).withColumn("n", rows.n + add)
"""


class Releases:
    """Releases of one pipeline, which share tables and checkpoints; each has the code of its wheel when it runs."""

    def __init__(self, spark, directory):
        self.spark, self.directory = spark, directory
        (directory / "data").mkdir()
        self.run("old")
        record = json.loads(self.record_file.read_text())
        assert record["release"] == "old"
        record["signature"] |= {"spark": "4.1.0", "others": ["text of another version"]}
        self.record_file.write_text(json.dumps(record))

    @property
    def record_file(self):
        return self.directory / "checkpoints" / "flow" / "land" / "1" / "signature.json"

    def run(self, name, pipeline=PIPELINE, code=CODE):
        """Store a release, run it with new data, and return its warnings."""
        root = self.directory / "releases" / name
        files = {"conf/pipelines/flow.yml": pipeline, "conf/local.yml": self._environment(), "manifest.json": "{}"}
        for path, content in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(content)
        (root / "wheels").mkdir()
        with zipfile.ZipFile(root / "wheels" / "upgraded-1.0+g1a2b3c4d-py3-none-any.whl", "w") as wheel:
            wheel.writestr("upgraded_code/__init__.py", "")
            wheel.writestr("upgraded_code/steps.py", code)
            wheel.writestr("headrace/__init__.py", "raise ImportError('Headrace of the old release')")
        self._install(root)
        (self.directory / "data" / f"{name}.json").write_text(
            json.dumps({"id": name, "n": 1, "at": "2026-01-01T12:00:00Z"})
        )
        bundle = load_bundle(root)
        runner.run(self.spark, bundle, "flow", once=True)
        events = read_events(bundle.run_files_directory, "flow")
        return [event.message for event in events if event.what == "warning"]

    def _install(self, root):
        """Install the bundle's wheel, as a job does."""
        shutil.rmtree(self.directory / "site", ignore_errors=True)
        (wheel,) = (root / "wheels").iterdir()
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(self.directory / "site", ["upgraded_code/__init__.py", "upgraded_code/steps.py"])
        forget_code()

    def _environment(self):
        return dedent(f"""\
            engine: {{kind: local}}
            tables: {{root: {self.directory}/tables}}
            checkpoints: {self.directory}/checkpoints
            sources: {{rows: {{kind: files, format: json, path: {self.directory}/data}}}}
            """)


def forget_code():
    for name in [name for name in sys.modules if name.startswith("upgraded_code")]:
        del sys.modules[name]


@pytest.fixture
def releases(spark, tmp_path, monkeypatch):
    """A release `old` that has run, before Spark was upgraded."""
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two versions of the code may have the same second and size
    yield Releases(spark, tmp_path)
    forget_code()


def test_unchanged_step_starts_without_a_note(releases):
    assert releases.run("new") == []
    record = json.loads(releases.record_file.read_text())
    assert (record["release"], record["signature"]["spark"]) == ("new", releases.spark.version)


def test_changed_code_is_compared_with_the_old_code(releases):
    (note,) = releases.run("new", code=CODE.replace("rows.n + add", "rows.n - add"))
    assert "(rows.n + 1) → (rows.n - 1)" in note
    assert sys.modules["upgraded_code.steps"].__file__.startswith(str(releases.directory / "site"))
    assert not [path for path in sys.path if "headrace-code-" in path]


def test_changed_step_is_compared_with_the_old_step(releases):
    with pytest.raises(GuardError, match="keys of dropDuplicates id, at → n, at: Spark refuses the old state"):
        releases.run("new", pipeline=PIPELINE.replace("keys: [id]", "keys: [n]"))


@pytest.mark.parametrize("damage", ["deleted", "code fails", "step renamed"])
def test_versions_are_named_if_the_release_cannot_be_used(releases, damage):
    old = releases.directory / "releases" / "old"
    if damage == "deleted":
        shutil.rmtree(old)
    elif damage == "code fails":
        with zipfile.ZipFile(next((old / "wheels").iterdir()), "w") as wheel:
            wheel.writestr("upgraded_code/__init__.py", "raise OSError('needs an older library')")
    else:
        pipeline = old / "conf" / "pipelines" / "flow.yml"
        pipeline.write_text(PIPELINE.replace("land:", "landed:"))
    (note,) = releases.run("new")
    assert note.startswith("versions Spark 4.1.0, Python ")
    assert note.endswith("texts and code cannot be compared; Spark itself has compared the state")
