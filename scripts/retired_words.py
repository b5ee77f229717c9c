"""Find words that Headrace's texts and names do not use: scripts/retired_words.py [PATH…].

Readers had to guess what these words mean. Identifiers are split into words, so that `is_told` is found.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATHS = ("src", "README.md", "CONTRIBUTING.md", "SECURITY.md", "docs", ".github")
SUFFIXES = {".py", ".md", ".yml", ".template", ".java", ".json", ".toml"}
RETIRED = re.compile(
    r"(?<![a-z])(?:told|tell(?:s|ing)?|anew|mend(?:s|ed|ing)?|crews?|left-?overs?|who(?:so)?ever|nobody|"
    r"judg(?:e[sd]?|ing|e?ments?)|by hand|without a word|(?:go|goes|going|gone|went) on)(?![a-z])",
    re.IGNORECASE,
)

EXEMPT = "# stored key"  # the end of a line with a key of a file format, which cannot be renamed


def find(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line number and the text of each retired word."""
    text = text.replace(".tell(", ".(")  # the method of Python's files
    split_text = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).replace("_", " ")
    for number, line in enumerate(split_text.splitlines(), 1):
        if line.endswith(EXEMPT):
            continue
        for match in RETIRED.finditer(line):
            yield number, match[0]


def text_files(path: Path) -> list[Path]:
    """Return the files to check in a directory, or the file itself."""
    candidates = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [file for file in candidates if file.suffix in SUFFIXES and file.exists()]


def main(arguments: list[str]) -> int:
    """Check the files and directories in `arguments`, by default all in PATHS, and return the exit code."""
    count = 0
    for path in [Path(argument) for argument in arguments] or [ROOT / name for name in PATHS]:
        for file in text_files(path):
            for number, word in find(file.read_text(encoding="utf-8")):
                print(f"{file}:{number}: {word}")
                count += 1
    if count:
        print(f"Error: {count} retired words\n  fix: use the terms of Spark's and Python's documentation")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
