"""Environment files: names, paths, and the environments of this repository."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from bundle_files import DATABRICKS, problems_of
from headrace.config.load import load_all, load_bundle
from headrace.config.models import DatabricksEngine, Every, KafkaSource, Secret

REPOSITORY = Path(__file__).parents[2]
WriteBundle = Callable[[Mapping[str, str | bytes | None]], Path]
Golden = Callable[[str, str], None]


def test_unknown_environment_is_an_error(write_bundle: WriteBundle, golden: Golden) -> None:
    root = write_bundle({"conf/staging.yml": DATABRICKS})
    golden("config/unknown_environment", problems_of(root, "stagin") + "\n" + problems_of(root, "prod"))


def test_relative_paths_start_at_the_bundles_root(write_bundle: WriteBundle) -> None:
    environment = """\
engine: {kind: local, ivy_settings: ivy.xml}
tables: {root: s3a://bucket/tables}
checkpoints: /Volumes/a/b
sources: {ticks: {kind: files, format: text, path: data}}
folders: {out: exports, away: "abfss://x@y/z"}
"""
    root = write_bundle({"conf/local.yml": environment})
    loaded = load_bundle(root).environment
    assert loaded.engine.ivy_settings == str(root / "ivy.xml")  # type: ignore[union-attr]
    assert loaded.tables.root == "s3a://bucket/tables"
    assert loaded.checkpoints == "/Volumes/a/b"
    assert loaded.sources["ticks"].path == str(root / "data")  # type: ignore[union-attr]
    assert loaded.folders == {"out": str(root / "exports"), "away": "abfss://x@y/z"}


def test_environments_of_the_repository_are_loaded() -> None:
    environments = {bundle.environment.name: bundle.environment for bundle in load_all(REPOSITORY)}
    assert list(environments) == ["dev", "local", "prod", "staging"]
    prod = environments["prod"]
    assert prod.engine == DatabricksEngine(kind="databricks")
    assert prod.trigger == Every(every="30 seconds")
    source = prod.sources["orders"]
    assert isinstance(source, KafkaSource) and source.security is not None
    assert source.security.tls  # by default no password is sent unencrypted
    assert source.start == "earliest"
    assert source.security.password == Secret(secret="shop/kafka-password")
    assert environments["dev"].tables.schema_ == "shop_user"
