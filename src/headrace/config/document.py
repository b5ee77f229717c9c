"""Read one YAML file as plain data with the line of each key. Report values that YAML readers interpret differently."""

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
except ImportError:  # without libyaml, PyYAML's parser in Python gives the same results, but is slower
    from yaml import SafeLoader as Loader  # type: ignore[assignment]

MAX_BYTES = 1_000_000  # this and the next two are limits of one file
MAX_VALUES = 50_000
MAX_DEPTH = 50

# Scalars of YAML 1.2's core schema.
NULL = re.compile(r"(?:~|null|Null|NULL|)\Z")
BOOLEAN = re.compile(r"(?:(true|True|TRUE)|false|False|FALSE)\Z")  # group 1 matches if the value is true
INTEGER = re.compile(r"[-+]?[0-9]{1,99}\Z")
OCTAL_OR_HEXADECIMAL = re.compile(r"0o[0-7]{1,99}\Z|0x[0-9a-fA-F]{1,99}\Z")
FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
INFINITY_OR_NAN = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")

# Unquoted scalars that readers of YAML 1.1 interpret differently than readers of YAML 1.2.
YAML_1_1_BOOLEAN = re.compile(r"(?:yes|no|on|off)\Z", re.IGNORECASE)
YAML_1_1_NUMBER = re.compile(
    r"[-+]?(?:0[0-9_]+|[0-9][0-9_]*_[0-9_.]*|0b[01_]+|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?)\Z"
)


@dataclass(frozen=True)
class Document:
    """One YAML file: its data, the location of each key, and the problems of its syntax."""

    locations: KeyLocations
    data: Any = None  # None if the file cannot be read
    problems: tuple[Problem, ...] = ()
    # The key paths of invalid values, of invalid keys, which `data` omits, and of mappings with a key that has no key
    # path (`<<`, or a key that is not text). `problems` has a problem for each; checks report no others at these paths.
    invalid: frozenset[KeyPath] = frozenset()

    @property
    def mapping(self) -> dict[str, Any]:
        """The data, which is a mapping; an empty mapping if the file cannot be read."""
        return self.data if isinstance(self.data, dict) else {}


def read_document(path: Path, name: str, *, strict: bool = True) -> Document:
    """Return the content of one file, including its problems. `name` is the file's name in messages.

    If `strict` is false, ignore tags, keep `<<` as an ordinary key, and interpret ambiguous scalars as YAML 1.2 does.
    """
    try:
        text = _read_text(path)
        _check_events(text, strict)
        node = yaml.compose(text, Loader)
    except OSError as error:
        return _unreadable(name, f"the file cannot be read: {error.strerror}", "make it readable")
    except _InvalidFileError as error:
        return _unreadable(name, error.message, error.fix, error.line)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        return _unreadable(name, "the file is not UTF-8", "save it as UTF-8", line)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return _unreadable(name, *_describe_syntax_error(text, error, mark), mark.line + 1 if mark else 0)
    except yaml.YAMLError as error:
        reason = getattr(error, "reason", "it cannot be parsed")
        return _unreadable(name, f"not valid YAML: {reason}", "remove the character that YAML does not allow")
    if node is None or (isinstance(node, yaml.ScalarNode) and not node.style and NULL.match(node.value)):
        return _unreadable(name, "the file is empty", "write the configuration, or delete the file")
    builder = _Builder(name, strict)
    try:
        data = builder.build(node, (), ())
    except _InvalidFileError as error:
        return _unreadable(name, error.message, error.fix, error.line)
    if not isinstance(data, dict):
        return _unreadable(name, "the file must be a mapping", "start with a key and a colon", 1)
    locations = KeyLocations(name, builder.lines)
    return Document(locations, data, tuple(builder.problems), frozenset(builder.invalid))


def wrong_suffix(file: str) -> Problem:
    """Return the problem of a file that is not read because its name ends in .yaml."""
    return Problem(file, "files that end in .yaml are not read", f"rename it to {Path(file).stem}.yml")


class _InvalidFileError(Exception):
    """A problem that makes the rest of the file unreadable."""

    def __init__(self, message: str, fix: str, line: int = 0) -> None:
        self.message, self.fix, self.line = message, fix, line


def _unreadable(name: str, message: str, fix: str, line: int = 0) -> Document:
    where = f"{name}:{line}" if line else name
    return Document(KeyLocations(name), None, (Problem(where, message, fix),))


def _read_text(path: Path) -> str:
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise _InvalidFileError(f"the file has {size:,} bytes, more than {MAX_BYTES:,}", "split it into several files")
    return path.read_bytes().decode("utf-8-sig")


def _check_events(text: str, strict: bool) -> None:
    """Raise _InvalidFileError for deep nesting and, if `strict`, for tags.

    This check runs before nodes are composed, because composing deeply nested nodes overflows the C stack.
    """
    depth = 0
    for event in yaml.parse(text, Loader):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if strict and (tag := getattr(event, "tag", None)):
            short_tag = tag.replace("tag:yaml.org,2002:", "!!")
            raise _InvalidFileError(f"the tag '{short_tag}' is not supported", "remove it", line)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _InvalidFileError(f"values are nested deeper than {MAX_DEPTH} levels", "reduce the nesting", line)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _describe_syntax_error(text: str, error: yaml.MarkedYAMLError, mark: Any) -> tuple[str, str]:
    """Return the message and the fix for a syntax error. `mark` is its position, or None."""
    lines = text.splitlines()
    line = lines[mark.line] if mark and mark.line < len(lines) else ""
    indentation = line[: len(line) - len(line.lstrip())]
    if "\t" in indentation or "'\\t'" in str(error.problem):
        return "not valid YAML: a tab where only spaces are allowed", "indent with spaces"
    if "single document" in str(error.context):
        return "the file contains more than one YAML document", "keep one document in each file: remove '---'"
    is_in_braces = "{" in line.replace("${", "")
    if "${" in line and is_in_braces:
        return "not valid YAML: unquoted text inside { } cannot contain '${'", 'quote the text: "…${name}…"'
    return f"not valid YAML: {error.problem}", "check colons, quotes, brackets and indentation up to this line"


@dataclass
class _Builder:
    """Convert nodes to plain data, and collect the line of each key and the problems."""

    name: str
    strict: bool
    lines: dict[KeyPath, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    invalid: set[KeyPath] = field(default_factory=set)

    def build(self, node: yaml.Node, path: KeyPath, ancestors: tuple[int, ...]) -> Any:
        """Return the data of the node at a key path. `ancestors` are the ids of the nodes that contain the node."""
        line = node.start_mark.line + 1
        self.lines.setdefault(path, line)  # unless `_mapping` has set the line of the value's key
        if id(node) in ancestors:
            fix = "write the values out instead of using an alias"
            raise _InvalidFileError("an alias refers to a value that contains it", fix, line)
        # `_check_events` has checked the depth of the text, but aliases can nest values deeper.
        if len(self.lines) > MAX_VALUES or len(ancestors) > 2 * MAX_DEPTH:
            message = f"aliases expand to more than {MAX_VALUES:,} values"
            raise _InvalidFileError(message, "write the values out instead of using aliases", line)
        ancestors = (*ancestors, id(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, ancestors)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, index), ancestors) for index, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: KeyPath, ancestors: tuple[int, ...]) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = key_node.value
            if not isinstance(key_node, yaml.ScalarNode):
                self._add_problem(path, line, "a key must be text", "write a name before the colon")
                self.invalid.add(path)
                continue
            if self.strict and not key_node.style and (message := _unsupported_key(key)):
                fix = "write the keys out" if key == "<<" else f'quote it: "{key}"'
                self._add_problem(path, line, message, fix)
                self.invalid.add(path if key == "<<" else (*path, key))
                continue
            if key in mapping:
                fix = f"keep one of them; the first is on line {self.lines[(*path, key)]}"
                self._add_problem(path, line, f"duplicate key '{key}'", fix)
                continue
            self.lines[(*path, key)] = line
            mapping[key] = self.build(value_node, (*path, key), ancestors)
        return mapping

    def _scalar(self, node: Any, path: KeyPath) -> Any:
        text = str(node.value)
        if node.style:  # the scalar is quoted; the style of an unquoted one is None or empty, depending on the loader
            return text
        message = fix = ""
        if YAML_1_1_BOOLEAN.match(text):
            message = f"'{text}' is a boolean to some YAML readers and text to others"
            fix = f'write {_yaml_1_2_boolean(text)}, or quote it if it is text: "{text}"'
        elif YAML_1_1_NUMBER.match(text):
            message = f"'{text}' is a different number to different YAML readers"
            fix = f'quote it if it is text: "{text}"; otherwise write the number in plain digits'
        if self.strict and message:
            self._add_problem(path, node.start_mark.line + 1, message, fix)
            self.invalid.add(path)
        return parse_scalar(text)

    def _add_problem(self, path: KeyPath, line: int, message: str, fix: str) -> None:
        subject = f"{describe_path(path)}: " if path else ""
        self.problems.append(Problem(f"{self.name}:{line}", f"{subject}{message}", fix))


def _unsupported_key(key: str) -> str:
    """Return a message with the reason why an unquoted key is not supported; an empty string if it is supported."""
    if key == "<<":
        return "merging with '<<' is not supported"
    if YAML_1_1_BOOLEAN.match(key):
        return f"the key '{key}' is a boolean to some YAML readers"
    if YAML_1_1_NUMBER.match(key) or not isinstance(parse_scalar(key), str):
        return f"the key '{key}' is not text"
    return ""


def _yaml_1_2_boolean(text: str) -> str:
    return "true" if text.lower() in ("yes", "on") else "false"


def parse_scalar(text: str) -> str | int | float | bool | None:
    """Return the value of an unquoted scalar according to YAML 1.2."""
    if NULL.match(text):
        return None
    if boolean := BOOLEAN.match(text):
        return boolean[1] is not None
    if INTEGER.match(text):
        return int(text)
    if OCTAL_OR_HEXADECIMAL.match(text):
        return int(text, 0)
    if FLOAT.match(text):
        return float(text)
    if INFINITY_OR_NAN.match(text):
        return float(text.replace(".", "").lower())
    return text
