"""A release's manifest gets the report of the child process, or the reason why there is none."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from deployments import write_tiny
from headrace.release import releases, signature_process
from headrace.release.manifest import MANIFEST, Manifest
from headrace.release.signature_process import add_signatures

REPORT = {"environments": {"local": {"p": {"land": {"signature": {}}}}}}


@pytest.fixture
def root(built, tmp_path):
    return write_tiny(tmp_path / "tiny")


@pytest.fixture
def child(tmp_path, monkeypatch):
    """Return a function that replaces the child process by a module with this code, and returns a list of its calls."""

    def replace_by(code):
        (tmp_path / "child_code.py").write_text(f"open({str(tmp_path / 'calls')!r}, 'a').write('called\\n')\n{code}")
        monkeypatch.setattr(signature_process, "CHILD", "child_code")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
        return lambda: len((tmp_path / "calls").read_text().splitlines())

    return replace_by


def stored(release):
    """Return the signatures in the manifest on disk."""
    return Manifest.from_json((release.directory / MANIFEST).read_text()).signatures


def test_report_is_stored_and_reused(root, child):
    calls = child(f"print('a line of user code')\nprint({json.dumps(REPORT)!r})")
    started = []
    first = releases.current(root)
    signed = add_signatures(first, root, on_start=lambda: started.append(1))
    assert stored(signed) == signed.manifest.signatures == {**REPORT, "versions": signature_process._versions()}
    assert (signed.id, releases.verify(signed)) == (first.id, [])
    for release in (releases.current(root), releases.build(root)):  # unchanged content, also if it is built again
        assert add_signatures(release, root, on_start=lambda: started.append(1)) == release
    assert (calls(), len(started)) == (1, 1)


def test_signatures_of_other_versions_are_computed_again(root, child):
    calls = child(f"print({json.dumps(REPORT)!r})")
    release = releases.current(root)
    other = {**REPORT, "versions": {**signature_process._versions(), "spark": "4.1.0"}}
    add_signatures(replace(release, manifest=replace(release.manifest, signatures=other)), root)
    assert calls() == 1


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise SystemExit('no memory')", "the computation failed: no memory"),
        ("import os; os._exit(3)", "the computation failed: its exit code is 3"),
        ("while True: pass", "the computation did not end within 0.5 s"),
        ('print(\'{"not_computed": "Java is not installed"}\')', "Java is not installed"),
    ],
)
def test_reason_is_stored_if_the_child_fails(root, child, monkeypatch, code, reason):
    child(code)
    monkeypatch.setattr(signature_process, "TIMEOUT_S", 0.5 if "while" in code else 60)
    release = add_signatures(releases.current(root), root)
    assert stored(release)["not_computed"] == reason


def test_missing_java_is_the_reason(root, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    release = add_signatures(releases.current(root), root)
    assert stored(release)["not_computed"] == "JAVA_HOME is /nonexistent, which has no bin/java"
