"""The manifest of a release, which lists its files: the only file of the release that is not hashed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Manifest:
    """The files of a release, and what they were built from."""

    id: str
    files: dict[str, str]  # path -> sha256
    headrace: str  # version
    commit: str = ""
    dirty: bool = False  # built from uncommitted changes, or outside of git
    heartbeats: bool = False  # its runs write heartbeats
    signatures: dict[str, Any] = field(default_factory=dict)  # of the steps, see `signature_process`; empty if unknown

    @property
    def wheels(self) -> tuple[str, ...]:
        """The paths of the wheels."""
        return tuple(path for path in self.files if path.startswith("wheels/"))

    def to_json(self) -> str:
        """Return the content of manifest.json."""
        return json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Parse the content of manifest.json."""
        return cls(**json.loads(text))
