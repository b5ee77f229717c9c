"""The JSON Schemas of pipeline and environment files, with which editors complete and check keys.

`scripts/reference/make.py` makes the files in `schemas/` from the models. A bundle has copies of them, which its editor
settings refer to.
"""

from __future__ import annotations

from pathlib import Path

DIRECTORY = Path(__file__).with_name("schemas")
KINDS = ("pipeline", "environment")
BUNDLE_DIRECTORY = "schemas"


def schema(kind: str) -> str:
    """Return the text of the schema of pipeline files or of environment files."""
    return (DIRECTORY / _name(kind)).read_text(encoding="utf-8")


def write_schemas(bundle: Path) -> list[str]:
    """Write the schemas into a bundle; return their paths in it."""
    (bundle / BUNDLE_DIRECTORY).mkdir(parents=True, exist_ok=True)
    files = [f"{BUNDLE_DIRECTORY}/{_name(kind)}" for kind in KINDS]
    for kind, file in zip(KINDS, files, strict=True):
        (bundle / file).write_text(schema(kind), encoding="utf-8")
    return files


def _name(kind: str) -> str:
    return f"{kind}.schema.json"
