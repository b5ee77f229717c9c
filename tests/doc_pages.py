"""Carry out a page of the documentation as a reader does: change files, enter commands, compare their output.

The blocks of a page, in their order:

- ```console: each line after `$ ` is a command, which runs in a shell; the lines below it are its output. Without
  output lines, the output is not compared. A command must fail if a line of its output begins with "Error:", and must
  succeed otherwise.
- ```console title="after a while": the commands are repeated until they print what the page shows.
- ```console title="second terminal": one command, which runs until the page ends.
- ```yaml title="FILE", likewise for python and other languages: new content for parts of a file, or a new file. A part
  replaces the lines that begin in the same way, such as a step, a key or a function, with everything indented below.

In output, `…` stands for any text in a line, and a line `…` for any number of lines. Durations, times, ids and other
values that differ from run to run are not compared. A comment `<!-- before: COMMANDS -->` lists commands to run before
the page. To fill in an output, write `?` in its place, and run the page's test with HEADRACE_GOLDEN=write.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

BLOCK = re.compile(r'^```(\w+)(?: title="([^"]*)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
BEFORE = re.compile(r"<!-- before: (.*?) -->", re.DOTALL)
SECOND_TERMINAL = "second terminal"
AFTER_A_WHILE = "after a while"
HOME = "/home/me"  # stands for the directory in which a page is carried out
TIMEOUT_S = 300
# What differs from run to run, and what replaces it before outputs are compared.
VARIABLE = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\.\d+(?:Z|\+00:00)?|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00"), "TIME"),
    (re.compile(r"\b\d[\d,.]* ?m?s\b"), "DURATION"),
    (re.compile(r"\b[\d.]+ rows/s"), "RATE"),
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b|g[0-9a-f]{8}\b"), "ID"),
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"(?<==)\S{40,}"), "TOKEN"),
    (re.compile(r"[ ─━]+"), " "),
)


@dataclass(frozen=True)
class Block:
    """A block of a page."""

    language: str
    title: str
    text: str
    line: int

    def commands(self) -> list[tuple[str, list[str]]]:
        """Return the commands of a console block, each with the lines of its output."""
        commands: list[tuple[str, list[str]]] = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                commands.append((line[2:], []))
            elif line.startswith("> ") and not commands[-1][1]:
                commands[-1] = (f"{commands[-1][0]}\n{line[2:]}", [])
            else:
                commands[-1][1].append(line)
        return commands


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(match[1], match[2] or "", match[3], text.count("\n", 0, match.start()) + 1)
        for match in BLOCK.finditer(text)
    ]


def change_file(file: Path, text: str) -> None:
    """Replace each part of a file that has the same key as a part of the text; append the parts without a match."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    for part in _parts(text.splitlines()):
        key = _key(part[0])
        start = next((index for index, line in enumerate(lines) if _key(line) == key), None)
        if start is None:
            lines += part
            continue
        end = start + 1
        while end < len(lines) and not _begins_part(lines[end], _indentation(part[0])):
            end += 1
        while not lines[end - 1].strip():
            end -= 1
        lines[start:end] = part
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _parts(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the parts of a text: each line with the indentation of the first line begins one."""
    part: list[str] = []
    for line in lines:
        if part and _begins_part(line, _indentation(lines[0])):
            yield part
            part = []
        part.append(line)
    yield part


def _begins_part(line: str, indentation: int) -> bool:
    return bool(line.strip()) and _indentation(line) <= indentation and line.strip()[0] not in ")]}"


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _key(line: str) -> str:
    """Return the beginning of a line that identifies a part: up to a colon, a parenthesis or an assignment."""
    return re.split(r"[:(]| =", line, maxsplit=1)[0]


@dataclass
class Reader:
    """Carries out a page in a directory."""

    directory: Path
    environment: dict[str, str] = field(default_factory=dict)
    background: list[subprocess.Popen[str]] = field(default_factory=list)
    background_output: str = ""
    # For each block, by its line: the text with the real output.
    real: dict[int, str] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Start in the directory, with the commands of this Python environment."""
        self._working_directory = self.directory
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment |= {
            **os.environ,
            "PATH": path,
            "COLUMNS": "120",
            "LINES": "40",
            "NO_COLOR": "1",
            "PYTHONPATH": "src",
        }
        for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
            self.environment.setdefault(name, "me")
        for name in ("DATABRICKS_HOST", "DATABRICKS_TOKEN"):
            self.environment.pop(name, None)

    def carry_out(self, page: Path) -> None:
        """Carry out all blocks of a page."""
        try:
            for before in BEFORE.findall(page.read_text(encoding="utf-8")):
                for command in before.split("&&"):
                    self._run(command.strip())
            for block in blocks(page):
                self._carry_out(block)
        finally:
            for process in self.background:
                os.killpg(process.pid, signal.SIGINT)
                process.wait(TIMEOUT_S)

    def _carry_out(self, block: Block) -> None:
        if block.title == SECOND_TERMINAL:
            self._start(block)
        elif block.language == "console":
            lines = []
            for command, expected in block.commands():
                fails = None if expected == ["?"] else any(line.startswith("Error:") for line in expected)
                output = self._run(command, fails=fails)
                deadline = time.monotonic() + TIMEOUT_S
                while block.title == AFTER_A_WHILE and not matches(expected, output) and time.monotonic() < deadline:
                    time.sleep(0.5)
                    output = self._run(command, fails=fails)
                if expected and not matches(expected, output):
                    self.differences.append(_difference(block.line, command, expected, output))
                    expected = output
                lines += ["$ " + command.replace("\n", "\n> "), *expected]
            self.real[block.line] = "\n".join(lines) + "\n"
        elif block.title:
            change_file(self._working_directory / block.title, block.text)

    def _run(self, command: str, *, fails: bool | None = False) -> list[str]:
        """Run a command; return the lines of its output. `fails` is whether it must fail; None if it may."""
        if command.startswith("cd "):
            self._working_directory = self._working_directory / command.removeprefix("cd ").strip()
            return []
        if export := re.fullmatch(r"export (\w+)=(.*)", command):
            printed = re.search(rf"export {export[1]}=(\S+)", self.background_output)
            self.environment[export[1]] = printed[1] if printed else export[2]
            return []
        finished = subprocess.run(
            ["bash", "-c", command],
            cwd=self._working_directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        output = finished.stdout.replace(str(self.directory), HOME)
        has_failed = finished.returncode != 0
        assert fails in (has_failed, None), f"$ {command}\n{output}\nexit code {finished.returncode}"
        return [line.rstrip() for line in output.rstrip().splitlines()]

    def _start(self, block: Block) -> None:
        """Start the command of a second terminal, and wait until it has printed its output."""
        ((command, expected),) = block.commands()
        log = self.directory / "second-terminal.log"
        command = command.replace("headrace workspace", "headrace workspace --port 0")  # the default port may be taken
        with log.open("w") as output:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self._working_directory,
                env=self.environment,
                stdout=output,
                stderr=output,
                text=True,
                start_new_session=True,
            )
        self.background.append(process)
        deadline = time.monotonic() + TIMEOUT_S
        while not matches(expected, self.background_output.rstrip().splitlines()):
            assert time.monotonic() < deadline and process.poll() is None, self.background_output
            time.sleep(0.1)
            self.background_output = log.read_text()


def matches(expected: Sequence[str], output: Sequence[str]) -> bool:
    """Return whether an output is as a page shows it."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "…" else re.escape(_comparable(line)).replace("…", ".*") + r"\n"
        for line in _sort_rows(expected)
    )
    text = "".join(f"{_comparable(line)}\n" for line in _sort_rows(output))
    return re.fullmatch(pattern, text) is not None


def _sort_rows(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines with the rows of each table sorted: `headrace show` may print equal times in any order."""
    for is_row, group in groupby(lines, key=lambda line: line.startswith("│")):
        block = list(group)
        yield from sorted(block) if is_row else block


def _comparable(line: str) -> str:
    """Return a line without what differs from run to run."""
    for pattern, replacement in VARIABLE:
        line = pattern.sub(replacement, line)
    return line.rstrip()


def _difference(line: int, command: str, expected: Sequence[str], output: Sequence[str]) -> str:
    return "\n".join([f"line {line}: $ {command}", "--- the page shows", *expected, "--- the output is", *output])


def with_real_output(page: Path, reader: Reader) -> str:
    """Return the text of a page with the outputs that the reader has seen, where they differ from those of the page."""
    text = page.read_text(encoding="utf-8")

    def replace(match: re.Match[str]) -> str:
        line = text.count("\n", 0, match.start()) + 1
        return match[0].replace(match[3], reader.real[line]) if line in reader.real else match[0]

    return BLOCK.sub(replace, text)
