"""What a task finds on this machine."""

from __future__ import annotations

from pathlib import Path

from headrace.testing.workspace.task_environment import TaskEnvironment


def test_task_has_its_release_beside_the_other_ones(tmp_path: Path) -> None:
    releases = tmp_path / "Workspace" / "Shared" / "releases"
    for name in ("a1", "b2"):
        (releases / name / "conf" / "pipelines").mkdir(parents=True)
        (releases / name / "manifest.json").write_text("{}")
        (releases / name / "conf" / "dev.yml").write_text("checkpoints: /Volumes/dev/checkpoints\n")
    parameters = TaskEnvironment(tmp_path).local_parameters({"conf": "/Workspace/Shared/releases/b2/conf"}, tmp_path)
    bundle = Path(parameters["conf"])
    assert (bundle.name, bundle.is_symlink()) == ("b2", False)
    assert (bundle / "conf" / "dev.yml").read_text() == f"checkpoints: {tmp_path}/Volumes/dev/checkpoints\n"
    assert (bundle.parent / "a1").resolve() == releases / "a1"
