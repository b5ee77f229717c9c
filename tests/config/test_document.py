"""YAML files: syntax errors, ambiguous scalars, limits, and the line of each key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from bundle_files import LOCAL, errors_of, problems_of
from headrace.config.document import parse_scalar, read_document

REPOSITORY = Path(__file__).parents[2]
FILES = sorted(path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "conf").rglob("*.yml"))
WriteBundle = Callable[[Mapping[str, str | bytes | None]], Path]
Golden = Callable[[str, str], None]


# Each case is one pipeline file.
CASES: dict[str, str | bytes] = {
    "duplicate_keys": """\
steps:
  land:
    layer: bronze
    reads: {rows: {source: ticks}}
    writes: {table: landed}
    layer: silver
  land:
    layer: gold
""",
    "ambiguous_scalars": """\
steps:
  on:
    layer: bronze
  land:
    layer: bronze
    reads: {rows: {source: ticks, options: {a: yes, b: 1_000, c: 12:30, d: 010, e: Off, 12: x, f: "12:30", g: "no"}}}
    writes: {table: landed}
""",
    "empty": "",
    "only_comments": "# nothing\n",
    "not_a_mapping": "- steps\n",
    "not_utf8": b"steps:\n  land: {layer: \xff}\n",
    "control_character": b"steps: \x07\n",
    "tab": "steps:\n\tland: {}\n",
    "syntax": "steps:\n  land: {layer: bronze\n  more: x\n",
    "two_documents": "steps: {}\n---\nsteps: {}\n",
    "tag": "steps: !!python/object/apply:os.system ['true']\n",
    "merge_key": "steps:\n  a: &a {layer: bronze, reads: {rows: {source: ticks}}, writes: {table: a}}\n  b: {<<: *a}\n",
    "key_not_text": "steps:\n  [a, b]: {}\n  1.5: {}\n  null: {}\n",
    "deep_nesting": "steps: " + "[" * 5000 + "]" * 5000,
    "alias_bomb": "a0: &a0 [x]\n" + "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]\n" for n in range(9)),
    "many_aliases": "a: &a [x]\nsteps: [" + "*a, " * 60_000 + "]\n",
    "alias_of_itself": "steps: &steps\n  land: *steps\n",
    "large_file": "a: &a {}\nsteps: [" + "*a, " * 2_500_000 + "]\n",
}


@pytest.mark.parametrize("case", CASES)
def test_bad_file(case: str, write_bundle: WriteBundle, golden: Golden) -> None:
    golden(f"config/{case}", problems_of(write_bundle({"conf/pipelines/p.yml": CASES[case]})))


def test_reference_inside_braces_must_be_quoted(write_bundle: WriteBundle, golden: Golden) -> None:
    environment = LOCAL.replace("root: tables", "root: tables/${user}")
    golden("config/brace_in_flow", problems_of(write_bundle({"conf/local.yml": environment})))


def test_ambiguous_value_of_the_wrong_type_is_one_problem(write_bundle: WriteBundle) -> None:
    pipeline = """\
        steps:
          s: {layer: bronze, reads: {rows: {source: ticks, infer: yes}}, writes: {table: s}}
        """
    message = "step 's', input 'rows', infer: 'yes' is a boolean to some YAML readers and text to others"
    assert errors_of(write_bundle({"conf/pipelines/p.yml": dedent(pipeline)})) == [f"Error: {message}"]


def test_ambiguous_key_hides_no_missing_key(write_bundle: WriteBundle) -> None:
    root = write_bundle(
        {"conf/pipelines/p.yml": "steps:\n  s: {layer: bronze, reads: {rows: {source: ticks}}, on: t}\n"}
    )
    assert errors_of(root) == [
        "Error: step 's': 'writes' is missing",
        "Error: step 's': the key 'on' is a boolean to some YAML readers",
    ]


@pytest.mark.parametrize("file", [*FILES, "databricks.yml", "resources/orders.job.yml"])
def test_each_key_is_located_on_its_line(file: str) -> None:
    locations = read_document(REPOSITORY / file, file, strict=False).locations
    text = (REPOSITORY / file).read_text().splitlines()
    keys = {path: line for path, line in locations.lines.items() if path and isinstance(path[-1], str)}
    assert keys
    for path, line in keys.items():
        assert f"{path[-1]}:" in text[line - 1]
        assert locations.where(*path) == f"{file}:{line}"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None), ("~", None), ("null", None), ("true", True), ("FALSE", False), ("tRue", "tRue"),
        ("12", 12), ("-1", -1), ("+7", 7), ("0o17", 15), ("0x1F", 31), ("1.5", 1.5), ("1e3", 1000.0), (".5", 0.5),
        ("2024-01-01", "2024-01-01"), ("2g", "2g"), ("1.2.3", "1.2.3"), ("yes", "yes"), ("010", 10),
        (".inf", float("inf")), ("-.INF", float("-inf")), ("9" * 5000, float("inf")), ("=", "="),
    ],
)  # fmt: skip
def test_unquoted_scalars_are_parsed_according_to_yaml_1_2(text: str, value: object) -> None:
    parsed = parse_scalar(text)
    assert parsed == value
    assert type(parsed) is type(value)
