"""Test `headrace schema`."""

from __future__ import annotations

from click.testing import CliRunner

from headrace.cli import main
from headrace.config.schema_files import schema


def test_schemas_are_written_into_the_bundle(write_bundle):
    root = write_bundle({})
    (root / "schemas").mkdir()
    (root / "schemas" / "pipeline.schema.json").write_text("outdated")
    written = CliRunner().invoke(main, ["schema", "-C", str(root / "conf")])
    assert written.output == "wrote schemas/pipeline.schema.json\nwrote schemas/environment.schema.json\n"
    for kind in ("pipeline", "environment"):
        assert (root / "schemas" / f"{kind}.schema.json").read_text() == schema(kind)


def test_one_schema_is_printed_without_a_bundle(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(main, ["schema", "environment"]).output == schema("environment")
    assert list(tmp_path.iterdir()) == []


def test_directory_without_a_bundle_is_an_error(tmp_path):
    failed = CliRunner().invoke(main, ["schema", "-C", str(tmp_path)])
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert failed.stderr.startswith("Error: there is no bundle here")
