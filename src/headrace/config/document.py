"""One YAML file -> plain data and the lines of its keys, with everything that YAML hides brought to light."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from headrace.config.locations import KeyLocations, KeyPath, describe_path
from headrace.errors import Problem

try:
    from yaml import CSafeLoader as Loader
except ImportError:  # PyYAML without libyaml reads the same, slower
    from yaml import SafeLoader as Loader  # type: ignore[assignment]

MOST_BYTES = 1_000_000
MOST_VALUES = 50_000
MOST_DEPTH = 50

# The core schema of YAML 1.2.
NULL = re.compile(r"(?:~|null|Null|NULL|)\Z")
TRUTH = re.compile(r"(?:(true|True|TRUE)|false|False|FALSE)\Z")
WHOLE = re.compile(r"[-+]?[0-9]{1,99}\Z")
BASED = re.compile(r"0o[0-7]{1,99}\Z|0x[0-9a-fA-F]{1,99}\Z")
REAL = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
ENDLESS = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")

# What YAML 1.1 readers turn into something else than YAML 1.2 readers do.
OLD_TRUTH = re.compile(r"(?:yes|no|on|off)\Z", re.IGNORECASE)
OLD_NUMBER = re.compile(
    r"[-+]?(?:0[0-9_]+|[0-9][0-9_]*_[0-9_.]*|0b[01_]+|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?)\Z"
)


@dataclass(frozen=True)
class Document:
    """What one file says: plain data, where each key stands, what is wrong with the writing itself."""

    locations: KeyLocations
    data: Any = None
    problems: tuple[Problem, ...] = ()

    @property
    def mapping(self) -> dict[str, Any]:
        """The data if it is a mapping, else nothing."""
        return self.data if isinstance(self.data, dict) else {}


def read_document(path: Path, name: str, *, strict: bool = True) -> Document:
    """Read one file, called `name` in messages; not strict lets through what old readers see differently."""
    try:
        text = _text(path)
        _survey(text, strict)
        node = yaml.compose(text, Loader)
    except OSError as error:
        return _refused(name, f"the file cannot be read: {error.strerror}", "make it readable")
    except _RefusedError as refused:
        return _refused(name, refused.message, refused.fix, refused.line)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        return _refused(name, "the file is not UTF-8", "save it as UTF-8", line)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return _refused(name, *_syntax(text, error, mark), mark.line + 1 if mark else 0)
    except yaml.YAMLError as error:
        reason = getattr(error, "reason", "it cannot be parsed")
        return _refused(name, f"the file is not YAML: {reason}", "take out the character that YAML does not allow")
    if node is None or (isinstance(node, yaml.ScalarNode) and not node.style and NULL.match(node.value)):
        return _refused(name, "the file is empty", "write the configuration, or delete the file")
    builder = _Builder(name, strict)
    try:
        data = builder.value(node, (), ())
    except _RefusedError as refused:
        return _refused(name, refused.message, refused.fix, refused.line)
    if not isinstance(data, dict):
        return _refused(name, "the file must hold keys and their values", "start with a key and a colon", 1)
    return Document(KeyLocations(name, builder.lines), data, tuple(builder.problems))


class _RefusedError(Exception):
    """The file as a whole is not read any further."""

    def __init__(self, message: str, fix: str, line: int = 0) -> None:
        self.message, self.fix, self.line = message, fix, line


def _refused(name: str, message: str, fix: str, line: int = 0) -> Document:
    where = f"{name}:{line}" if line else name
    return Document(KeyLocations(name), None, (Problem(where, message, fix),))


def _text(path: Path) -> str:
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise _RefusedError(f"the file has {size:,} bytes, more than {MOST_BYTES:,}", "split it into several files")
    return path.read_bytes().decode("utf-8-sig")


def _survey(text: str, strict: bool) -> None:
    """Refuse, before anything is composed, tags and nesting so deep that it would break the C stack."""
    depth = 0
    for event in yaml.parse(text, Loader):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if strict and (tag := getattr(event, "tag", None)):
            shown = tag.replace("tag:yaml.org,2002:", "!!")
            raise _RefusedError(f"the tag '{shown}' is not read", "take it out", line)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MOST_DEPTH:
                raise _RefusedError(f"values are nested deeper than {MOST_DEPTH}", "write it flatter", line)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _syntax(text: str, error: yaml.MarkedYAMLError, mark: Any) -> tuple[str, str]:
    rows = text.splitlines()
    row = rows[mark.line] if mark and mark.line < len(rows) else ""
    if "\t" in row[: len(row) - len(row.lstrip())] or "'\\t'" in str(error.problem):
        return "a tab stands where YAML wants spaces", "indent with spaces"
    if "single document" in str(error.context):
        return "the file holds more than one YAML document", "keep one document in each file: take out '---'"
    if "${" in row and "{" in row.replace("${", ""):
        return "not valid YAML: '${' inside of { } ends the text", 'quote the text that holds it: "…${name}…"'
    return (
        f"not valid YAML: {error.problem}",
        "check colons, quotes, brackets and indentation up to this line",
    )


@dataclass
class _Builder:
    """Walks the nodes once: data, lines and problems come out."""

    name: str
    strict: bool
    lines: dict[KeyPath, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def value(self, node: yaml.Node, path: KeyPath, around: tuple[int, ...]) -> Any:
        line = node.start_mark.line + 1
        self.lines.setdefault(path, line)
        if id(node) in around:
            fix = "write the values out instead of using an alias"
            raise _RefusedError("an alias stands inside of what it stands for", fix, line)
        if len(self.lines) > MOST_VALUES or len(around) > 2 * MOST_DEPTH:
            message = f"aliases unfold to more than {MOST_VALUES:,} values"
            raise _RefusedError(message, "write the values out instead of using aliases", line)
        around = (*around, id(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, around)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, at), around) for at, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: KeyPath, around: tuple[int, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = key_node.value
            if not isinstance(key_node, yaml.ScalarNode):
                self._problem(path, line, "a key must be a word", "write one word before the colon")
                continue
            if self.strict and not key_node.style and (why := _strange_key(key)):
                self._problem(path, line, why, "write the keys out" if key == "<<" else f'quote it: "{key}"')
                continue
            if key in found:
                first = self.lines[(*path, key)]
                self._problem(
                    path,
                    line,
                    f"key '{key}' is written twice",
                    f"keep one of them; the first is on line {first}",
                )
                continue
            self.lines[(*path, key)] = line
            found[key] = self.value(value_node, (*path, key), around)
        return found

    def _scalar(self, node: Any, path: KeyPath) -> Any:
        text = str(node.value)
        line = node.start_mark.line + 1
        if node.style:  # plain is None or empty, by loader
            return text
        if self.strict and OLD_TRUTH.match(text):
            fix = f'write {_truth_of(text)}, or quote it if the text is meant: "{text}"'
            self._problem(path, line, f"'{text}' means true or false to some YAML readers and text to others", fix)
        elif self.strict and OLD_NUMBER.match(text):
            fix = f'quote it if the text is meant: "{text}"; else write the number in plain digits'
            self._problem(path, line, f"'{text}' is a different number to different YAML readers", fix)
        return parse_scalar(text)

    def _problem(self, path: KeyPath, line: int, message: str, fix: str) -> None:
        there = f"{describe_path(path)}: " if path else ""
        self.problems.append(Problem(f"{self.name}:{line}", f"{there}{message}", fix))


def _strange_key(key: str) -> str:
    if key == "<<":
        return "'<<' does not merge here"
    if OLD_TRUTH.match(key):
        return f"the key '{key}' means true or false to some YAML readers"
    if OLD_NUMBER.match(key) or not isinstance(parse_scalar(key), str):
        return f"the key '{key}' is not a word"
    return ""


def _truth_of(text: str) -> str:
    return "true" if text.lower() in ("yes", "on") else "false"


def parse_scalar(text: str) -> str | int | float | bool | None:
    """An unquoted scalar, as YAML 1.2 reads it."""
    if NULL.match(text):
        return None
    if truth := TRUTH.match(text):
        return truth[1] is not None
    if WHOLE.match(text):
        return int(text)
    if BASED.match(text):
        return int(text, 0)
    if REAL.match(text):
        return float(text)
    if ENDLESS.match(text):
        return float(text.replace(".", "").lower())
    return text
