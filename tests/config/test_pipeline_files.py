"""Pipeline files: which files are read, their steps and their sinks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from bundle_files import LOCAL, errors_of, problems_of
from editor_schemas import schema_errors
from headrace.config.load import load_all

WriteBundle = Callable[[Mapping[str, str | bytes | None]], Path]
Golden = Callable[[str, str], None]


# Each case is one pipeline file.
CASES = {
    "one_sink_on_many_lines": """\
steps:
  land:
    layer: bronze
    reads: {rows: {source: ticks}}
    writes:
      table: landed
      mode: upsert
      key: [value]
  other:
    layer: bronze
    reads: {rows: {source: ticks}}
    writes:
      table: other
      mode: history
""",
    "references_in_pipelines": """\
steps:
  land:
    layer: bronze
    reads: {rows: {source: ticks}}
    writes: {table: landed, options: {path: "${directory}/x"}}
""",
    "no_steps": "steps:\n",
}


@pytest.mark.parametrize("case", CASES)
def test_bad_pipeline(case: str, write_bundle: WriteBundle, golden: Golden) -> None:
    golden(f"config/{case}", problems_of(write_bundle({"conf/pipelines/p.yml": CASES[case]})))
    has_references = case == "references_in_pipelines"  # to a schema, `${directory}` is text like any other
    assert bool(schema_errors("pipeline", CASES[case])) != has_references


def test_files_that_are_not_read_are_errors(write_bundle: WriteBundle, golden: Golden) -> None:
    files = {"conf/pipelines/q.yaml": "steps: {}", "conf/prod.yaml": "a: 1", "conf/pipelines/my-orders.yml": "a: 1"}
    golden("config/files_not_read", problems_of(write_bundle(files)))


def test_files_with_the_wrong_suffix_are_the_only_problem(write_bundle: WriteBundle) -> None:
    reader = "steps:\n  s: {layer: silver, reads: {rows: {table: landed}}, writes: {table: t}}\n"
    root = write_bundle({"conf/pipelines/q.yml": reader})
    (root / "conf/pipelines/p.yml").rename(root / "conf/pipelines/p.yaml")
    (root / "conf/local.yml").rename(root / "conf/local.yaml")
    assert errors_of(root) == ["Error: files that end in .yaml are not read"] * 2
    (root / "conf/pipelines/q.yml").unlink()
    assert errors_of(root) == ["Error: files that end in .yaml are not read"] * 2


def test_editors_temporary_files_are_ignored(write_bundle: WriteBundle) -> None:
    root = write_bundle({"conf/._local.yml": b"\0", "conf/pipelines/._p.yml": b"\0", "conf/.x.yaml": "a"})
    (root / "conf/pipelines/.#p.yml").symlink_to("nowhere")
    assert [bundle.environment.name for bundle in load_all(root)] == ["local"]


@pytest.mark.parametrize("broken", ["step", "environment"])
def test_quarantine_is_not_unknown_while_its_step_or_environment_is_not_valid(
    write_bundle: WriteBundle, broken: str
) -> None:
    pipeline = """\
        steps:
          land:
            layer: bronze
            row_wise: {row_wise}
            transform: a:b
            reads: {{rows: {{source: lines, schema: a STRING}}}}
            writes: {{table: landed}}
          read: {{layer: silver, reads: {{rows: {{table: landed_quarantine}}}}, writes: {{table: copied}}}}
        """
    sources = "sources: {lines: {kind: files, format: json, path: data}}\n"
    engine = "local, cores: two" if broken == "environment" else "local"
    files = {
        "conf/pipelines/p.yml": dedent(pipeline).format(row_wise="one" if broken == "step" else "true"),
        "conf/local.yml": LOCAL.replace("local", engine) + sources,
    }
    assert errors_of(write_bundle(files)) == [
        "Error: step 'land', row_wise: must be true or false, not 'one'"
        if broken == "step"
        else "Error: engine, cores: must be a whole number, not 'two'"
    ]


def test_unreadable_file_causes_no_problems_in_other_files(write_bundle: WriteBundle) -> None:
    files = {
        "conf/pipelines/p.yml": "steps:\n\tland: {}\n",
        "conf/pipelines/q.yml": "steps:\n  s: {layer: silver, reads: {rows: {table: landed}}, writes: {table: t}}\n",
        "conf/local.yml": LOCAL + "triggers: {land: once}\nsources: {ticks: {kind: rate}}\n",
    }
    assert errors_of(write_bundle(files)) == ["Error: not valid YAML: a tab where only spaces are allowed"]


def test_skipped_key_causes_no_problems_in_other_steps(write_bundle: WriteBundle) -> None:
    pipeline = """\
        steps:
          on: {layer: bronze, reads: {rows: {source: ticks}}, writes: {table: landed}}
          s: {layer: silver, reads: {rows: {table: landed}}, writes: {table: t}}
        """
    root = write_bundle({"conf/pipelines/p.yml": dedent(pipeline)})
    assert errors_of(root) == ["Error: steps: the key 'on' is a boolean to some YAML readers"]


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("{layer: '${layer}', %s, writes: {table: t}}", "layer: a pipeline cannot contain the reference '${layer}'"),
        (
            "{layer: bronze, %s, writes: {console: yes}}",
            "writes, console: 'yes' is a boolean to some YAML readers and text to others",
        ),
    ],
)
def test_value_with_a_problem_is_reported_once(step: str, error: str, write_bundle: WriteBundle) -> None:
    pipeline = "steps: {s: " + step % "reads: {rows: {source: ticks}}" + "}\n"
    assert errors_of(write_bundle({"conf/pipelines/p.yml": pipeline})) == [f"Error: step 's', {error}"]
