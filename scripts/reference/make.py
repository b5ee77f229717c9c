"""Make the files that are derived from the code: the reference pages of the documentation, and the JSON Schemas.

`python scripts/reference/make.py` writes them. With --check, it lists the files that differ instead, and exits with 1.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from command_page import make_command_page
from configuration_page import make_configuration_page
from error_page import make_error_page
from event_page import make_event_page
from json_schemas import make_schemas
from python_page import make_python_page

ROOT = Path(__file__).resolve().parents[2]


def make_files() -> dict[Path, str]:
    """Return the content of each file."""
    schemas = make_schemas()
    pages = {
        "configuration": make_configuration_page(schemas),
        "commands": make_command_page(),
        "events": make_event_page(),
        "errors": make_error_page(),
        "python": make_python_page(),
    }
    files = {ROOT / "docs" / "reference" / f"{name}.md": page for name, page in pages.items()}
    for name, schema in schemas.items():
        file = ROOT / "src" / "headrace" / "config" / "schemas" / f"{name}.schema.json"
        files[file] = json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
    return files


def main() -> None:
    """Write the files, or compare them."""
    stale = []
    for file, text in make_files().items():
        if file.is_file() and file.read_text(encoding="utf-8") == text:
            continue
        stale.append(str(file.relative_to(ROOT)))
        if "--check" not in sys.argv:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    if stale and "--check" in sys.argv:
        print(f"Error: not made from the present code: {', '.join(stale)}\n  fix: python scripts/reference/make.py")
        sys.exit(1)


if __name__ == "__main__":
    main()
