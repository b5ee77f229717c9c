"""Values of environments: declared, given, and replaced where they are used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bundle_files import LOCAL, errors_of, problems_of
from headrace.config.load import load_all, load_bundle
from headrace.errors import ConfigurationError

REPOSITORY = Path(__file__).parents[2]
WriteBundle = Callable[[Mapping[str, str | bytes | None]], Path]
Golden = Callable[[str, str], None]

LOCAL_WITH_REFERENCE = LOCAL.replace("local", 'local, cores: "${cores}"')
VALUES = (
    LOCAL
    + """\
sources: {ticks: {kind: rate}, files: {kind: files, format: text, path: "data/${usr}/${a-b}/${unclosed"}}
values: {user: {required: true}, other: {required: false}, list: [1], nested: "/data/${user}"}
folders: {out: "${user:-me}"}
"""
)


def test_bad_values(write_bundle: WriteBundle, golden: Golden) -> None:
    golden("config/values", problems_of(write_bundle({"conf/local.yml": VALUES})))


@pytest.mark.parametrize(
    ("case", "given"),
    [
        ("value_missing", {}),
        ("value_not_declared", {"user": "ann", "usr": "bob"}),
        ("value_not_a_number", {"user": "ann", "cores": "two"}),
    ],
)
def test_given_values(case: str, given: dict[str, str], write_bundle: WriteBundle, golden: Golden) -> None:
    environment = LOCAL + "sources: {ticks: {kind: rate}}\nvalues: {user: {required: true}, cores: 2}\n"
    golden(f"config/{case}", problems_of(write_bundle({"conf/local.yml": environment}), values=given))


@pytest.mark.parametrize(
    ("cores", "given", "error"),
    [
        ("{required: true}", {}, "value 'cores' is required"),
        ("2", {"cores": "two"}, "value 'cores' must be a whole number, not 'two'"),
        ("2", {"coers": "2"}, "value 'coers' is given but not declared"),
    ],
)
def test_bad_value_is_no_problem_where_it_is_used(
    cores: str, given: dict[str, str], error: str, write_bundle: WriteBundle
) -> None:
    environment = f"{LOCAL_WITH_REFERENCE}sources: {{ticks: {{kind: rate}}}}\nvalues: {{cores: {cores}}}\n"
    assert errors_of(write_bundle({"conf/local.yml": environment}), values=given) == [f"Error: {error}"]


def test_undeclared_reference_is_one_problem(write_bundle: WriteBundle) -> None:
    environment = LOCAL_WITH_REFERENCE + "sources: {ticks: {kind: rate}}\n"
    root = write_bundle({"conf/local.yml": environment})
    assert errors_of(root) == ["Error: engine, cores: '${cores}' is not declared under values"]


def test_references_are_replaced_by_values(write_bundle: WriteBundle) -> None:
    environment = """\
engine: {kind: local, cores: "${cores}", memory: 2g}
tables: {root: "/data/${user}-${cores}"}
checkpoints: checkpoints/${user}
sources: {ticks: {kind: rate}}
values:
  user: {required: true}
  cores: 3
"""
    root = write_bundle({"conf/local.yml": environment})
    loaded = load_bundle(root, values={"user": "010"}).environment
    assert (loaded.engine.cores, loaded.tables.root) == (3, "/data/010-3")  # type: ignore[union-attr]
    assert loaded.checkpoints == str(root / "checkpoints/010")
    assert load_bundle(root, values={"user": "a", "cores": "4"}).environment.engine.cores == 4  # type: ignore[union-attr]
    assert load_bundle(root, lenient=True).environment.tables.root == "/data/user-3"


def test_given_value_is_valid_if_one_environment_declares_it(write_bundle: WriteBundle, golden: Golden) -> None:
    assert load_all(REPOSITORY, {"user": "ann"})[0].environment.tables.schema_ == "shop_ann"
    with pytest.raises(ConfigurationError) as caught:
        load_all(REPOSITORY, {"usr": "ann"})
    golden("config/value_of_no_environment", str(caught.value))
