"""Find words that Headrace's texts and names do not use: scripts/retired_words.py [PATH…].

They are words that readers had to guess. Identifiers are read word by word: `is_told` is found.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATHS = ("src", "README.md", "docs")
SUFFIXES = {".py", ".md", ".yml", ".template", ".java", ".json", ".toml"}
RETIRED = re.compile(
    r"(?<![a-z])(?:told|tell(?:s|ing)?|anew|mend(?:s|ed|ing)?|crews?|left-?overs?|who(?:so)?ever|nobody|"
    r"judg(?:e[sd]?|ing|e?ments?)|by hand|without a word|(?:go|goes|going|gone|went) on)(?![a-z])",
    re.IGNORECASE,
)

EXEMPT = "# stored key"  # ends a line with a key of a file on disk, which has to stay


def find(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line number and the text of each retired word."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).replace("_", " ")
    for number, line in enumerate(words.splitlines(), 1):
        if line.endswith(EXEMPT):
            continue
        for match in RETIRED.finditer(line):
            yield number, match[0]


def main(arguments: list[str]) -> int:
    count = 0
    for start in [Path(argument) for argument in arguments] or [ROOT / path for path in PATHS]:
        files = sorted(start.rglob("*")) if start.is_dir() else [start] if start.exists() else []
        for file in (file for file in files if file.suffix in SUFFIXES):
            for number, word in find(file.read_text(encoding="utf-8")):
                print(f"{file}:{number}: {word}")
                count += 1
    if count:
        print(f"Error: {count} retired words\n  fix: say it in the words of Spark's and Python's documentation")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
