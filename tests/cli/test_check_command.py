"""Test `headrace check`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from click.testing import CliRunner

from headrace.cli import main

REPOSITORY = Path(__file__).parents[2]
WriteBundle = Callable[[Mapping[str, str | bytes | None]], Path]
Golden = Callable[[str, str], None]

BAD = {"conf/pipelines/p.yml": "steps:\n  land: {layer: bronze, reads: {rows: {source: tick}}, writes: {table: a}}\n"}
UNKNOWN_MODULE = (
    "steps:\n  land: {layer: bronze, reads: {rows: {source: ticks}}, transform: nowhere:f, writes: {table: a}}\n"
)


def _run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, arguments)
    return result.exit_code, result.stdout, result.stderr


def test_repository_has_no_errors() -> None:
    assert _run("check", "-C", str(REPOSITORY)) == (0, "ok: 1 pipeline, 4 steps, 4 environments\n", "")


def test_checking_one_environment(golden: Golden) -> None:
    options = ("-C", str(REPOSITORY))
    assert _run("check", "--env", "prod", *options) == (0, "ok: 1 pipeline, 4 steps, 1 environment\n", "")
    assert _run("check", "--env", "dev", "--value", "user=ann", *options)[0] == 0
    code, out, err = _run("check", "--env", "dev", *options)
    assert (code, out) == (1, "")
    golden("cli/check_value", err)


def test_problems_go_to_stderr(write_bundle: WriteBundle, golden: Golden) -> None:
    code, out, err = _run("check", "-C", str(write_bundle(BAD)))
    assert (code, out) == (1, "")
    golden("cli/check_problems", err)


def test_function_of_an_unknown_module_is_an_error(write_bundle: WriteBundle, golden: Golden) -> None:
    code, _, err = _run("check", "-C", str(write_bundle({"conf/pipelines/p.yml": UNKNOWN_MODULE})))
    assert code == 1
    golden("cli/check_function", err)


def test_functions_are_checked_together_with_the_files(write_bundle: WriteBundle, golden: Golden) -> None:
    files = {"conf/pipelines/p.yml": UNKNOWN_MODULE, "conf/local.yml": "engine: {kind: lokal}\n"}
    code, _, err = _run("check", "-C", str(write_bundle(files)))
    assert code == 1
    golden("cli/check_everything", err)


def test_function_that_cannot_be_checked_is_a_note(write_bundle: WriteBundle, golden: Golden) -> None:
    root = write_bundle({"conf/pipelines/p.yml": UNKNOWN_MODULE, "src/nowhere.py": "f = print\n"})
    code, out, err = _run("check", "-C", str(root))
    assert (code, err) == (0, "")
    golden("cli/check_note", out)


def test_json_output(write_bundle: WriteBundle) -> None:
    code, out, _ = _run("check", "-C", str(REPOSITORY), "-o", "json")
    facts = json.loads(out)
    assert (code, facts["ok"], facts["problems"], facts["pipelines"]) == (0, True, [], ["orders"])
    assert facts["environments"] == ["dev", "local", "prod", "staging"]
    code, out, err = _run("check", "-C", str(write_bundle(BAD)), "-o", "json")
    assert (code, err) == (1, "")
    assert json.loads(out) == {
        "ok": False,
        "notes": [],
        "environments": ["local"],
        "pipelines": ["p"],
        "problems": [
            {
                "where": "conf/pipelines/p.yml:2",
                "message": "step 'land' reads unknown source 'tick' (environment 'local')",
                "fix": "did you mean 'ticks'?",
            }
        ],
    }


def test_directory_outside_of_a_bundle_is_an_error(tmp_path: Path) -> None:
    code, _, err = _run("check", "-C", str(tmp_path))
    assert code == 1
    assert "there is no bundle here" in err and "--conf" in err


def test_check_imports_neither_spark_nor_user_code() -> None:
    check = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "headrace", "check"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (check.returncode, check.stdout) == (0, "ok: 1 pipeline, 4 steps, 4 environments\n")
    imported = {line.rpartition("|")[2].strip().split(".")[0] for line in check.stderr.splitlines()}
    assert not imported & {"pyspark", "headrace_shop", "rich", "py4j", "databricks"}
