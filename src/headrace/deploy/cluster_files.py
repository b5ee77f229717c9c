"""The files beside a plain Spark cluster. File permissions apply."""

from __future__ import annotations

import os
import shutil
import uuid
from contextlib import suppress
from pathlib import Path


class DirectoryFiles:
    """Files in directories of this machine."""

    def read_file(self, path: str) -> bytes | None:
        """Return the content of a file, or None if it does not exist."""
        with suppress(FileNotFoundError):
            return Path(path).read_bytes()
        return None

    def write_file(self, path: str, content: bytes) -> None:
        """Write or replace a file atomically."""
        _write_temporary(Path(path), content).replace(path)

    def create_file(self, path: str, content: bytes) -> bool:
        """Create a file atomically and return True, or return False if it exists."""
        temporary = _write_temporary(Path(path), content)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        finally:
            temporary.unlink()
        return True

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents if they do not exist."""
        Path(path).mkdir(parents=True, exist_ok=True)

    def list_directory(self, path: str) -> list[str]:
        """Return the names in a directory; an empty list if it does not exist."""
        return sorted(file.name for file in Path(path).iterdir()) if Path(path).is_dir() else []

    def file_sizes(self, path: str) -> dict[str, int]:
        """Return the sizes of all files below a directory, by their paths in it; none if it does not exist."""
        root = Path(path)
        return {file.relative_to(root).as_posix(): file.stat().st_size for file in root.rglob("*") if file.is_file()}

    def delete(self, path: str) -> None:
        """Delete a file, or a directory with its content, if it exists."""
        if Path(path).is_dir():
            shutil.rmtree(path)
        else:
            Path(path).unlink(missing_ok=True)

    def grant_read(self, directory: str, principal: dict[str, str]) -> None:
        """Do nothing: the permissions of the file system apply."""

    def write_request(self, path: str, content: bytes) -> bool:
        """Write a stop request beside the checkpoints and return True. Return False if the path is not writable."""
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)  # a run that is starting may not have created it
            self.write_file(path, content)
        except OSError:
            return False
        return True

    def delete_request(self, path: str) -> None:
        """Delete a stop request if it exists."""
        Path(path).unlink(missing_ok=True)

    def read_checkpoint_file(self, path: str) -> bytes | None:
        """Return the content of a file beside the checkpoints, or None if it does not exist."""
        return self.read_file(path)


def _write_temporary(path: Path, content: bytes) -> Path:
    """Write the content to a new hidden file in the same directory, and return its path."""
    temporary = path.with_name(f".{path.name}-{uuid.uuid4().hex}")
    temporary.write_bytes(content)
    return temporary
