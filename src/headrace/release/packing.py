"""Decide which files a release may pack: no hidden files, no links out of the bundle, credentials only if allowed."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath

from headrace.errors import ConfigurationError, Problem
from headrace.release import working_tree

CREDENTIAL_NAME = re.compile(r"\.env.*|.*\.(pem|key)|cred.*|.*secret.*", re.IGNORECASE | re.DOTALL)
PYTHON_CACHE = "__pycache__"


def is_hidden(path: str) -> bool:
    """Return whether a relative path names a hidden file, or a file in a hidden directory."""
    return any(part.startswith(".") for part in PurePosixPath(path).parts)


def list_files(root: Path, names: Iterable[str]) -> list[str]:
    """Return the paths of the files to pack.

    `names` are paths of files and directories in the bundle. Return these files, and all files in these directories.
    Skip names that do not exist and, in directories, hidden files and Python's caches. Raise ConfigurationError with a
    problem for each link that cannot be packed.
    """
    files: list[str] = []
    problems: list[Problem] = []
    pending = [root / name for name in names]
    while pending:
        path = pending.pop()
        if problem := _link_problem(root, path):
            problems.append(problem)
        elif path.is_dir():
            pending += [child for child in path.iterdir() if not is_hidden(child.name) and child.name != PYTHON_CACHE]
        elif path.exists():
            files.append(path.relative_to(root).as_posix())
    if problems:
        raise ConfigurationError.of(sorted(set(problems)))
    return sorted(files)


def left_out(root: Path, names: Iterable[str]) -> list[str]:
    """Return the files among these files and directories that are not packed because git ignores them."""
    ignored = working_tree.ignored_files(root, names)
    return sorted(path for path in ignored if not is_hidden(path) and PYTHON_CACHE not in path)


def require_not_ignored(root: Path, paths: Collection[str]) -> None:
    """Raise ConfigurationError with a problem for each of these files that git ignores."""
    fix = "commit it, for example with `git add --force`, or delete it"
    ignored = sorted(working_tree.ignored_files(root, paths) & set(paths)) if paths else []
    if ignored:
        raise ConfigurationError.of(
            Problem(str(root / path), f"{path} is ignored by git, so other releases of this commit lack it", fix)
            for path in ignored
        )


def find_credentials(root: Path, paths: Iterable[str]) -> list[str]:
    """Return the paths that look like a credential, by their own name or by the name of the file they link to."""

    def looks_like_credential(path: str) -> bool:
        return any(_is_credential(name) for name in (path, os.path.realpath(root / path)))

    return sorted({path for path in paths if looks_like_credential(path)})


def raise_for_credentials(root: Path, credentials: Iterable[str]) -> None:
    """Raise ConfigurationError with a problem for each of these paths; do nothing if there are none."""
    problems = [
        Problem(
            str(root / path),
            f"{path} looks like a credential",
            f"move it out of the bundle, or pack it anyway: --allow-file {shlex.quote(path)}",
        )
        for path in credentials
    ]
    if problems:
        raise ConfigurationError.of(problems)


def leads_out(root: Path, path: Path) -> bool:
    """Return whether a path contains a link that leads out of the bundle, even if a later link leads back into it."""
    return any(_is_outside(root, link) for link in _links(root, path))


def _is_credential(path: str) -> bool:
    """Return whether the name of the file, not of its directories, looks like a credential. Python modules do not."""
    name = PurePosixPath(path).name
    return bool(CREDENTIAL_NAME.fullmatch(name)) and not name.lower().endswith(".py")


def _link_problem(root: Path, path: Path) -> Problem | None:
    """Return the problem of the first link in the path that cannot be packed, or None if all links can be packed."""
    for link in _links(root, path):
        target = Path(os.path.realpath(link))
        if _is_outside(root, link):
            message = f"leads out of the bundle, to {target}"
        elif not target.exists():
            message = f"leads to {target}, which does not exist"
        elif target in {Path(os.path.realpath(parent)) for parent in link.parents}:
            message = f"leads to {target}, which contains it"
        else:
            continue
        name = link.relative_to(root).as_posix()
        return Problem(str(link), f"link {name} {message}", "replace the link with a copy of its target, or delete it")
    return None


def _is_outside(root: Path, path: Path) -> bool:
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def _links(root: Path, path: Path) -> Iterator[Path]:
    """Yield the symbolic links among a path and its ancestors below `root`, outermost first."""
    parts = path.relative_to(root).parts
    for length in range(1, len(parts) + 1):
        ancestor = root.joinpath(*parts[:length])
        if ancestor.is_symlink():
            yield ancestor
