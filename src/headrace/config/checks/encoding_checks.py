"""Check that Spark supports the encodings of sources, and that it can split files in these encodings into lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headrace.config.environment_files import EnvironmentDraft
from headrace.config.locations import describe_path
from headrace.config.models import FileSource, KafkaSource, Setting, Step
from headrace.config.pipeline_files import PipelineDraft
from headrace.config.spark_options import encoding_of, is_true, option
from headrace.errors import Problem

ENCODED_FORMATS = ("json", "csv", "text")  # XML has its own parser, and the other formats have no encoding
SUPPORTED_ENCODINGS = ("US-ASCII", "ISO-8859-1", "UTF-8", "UTF-16BE", "UTF-16LE", "UTF-16", "UTF-32")  # Spark 4.2.0
MULTI_BYTE_ENCODINGS = ("UTF-16BE", "UTF-16LE", "UTF-16", "UTF-32")
ANY_CHARSET_SETTING = "spark.sql.legacy.javaCharsets"  # the setting with which Spark accepts every charset of Java


def check_encodings(draft: PipelineDraft, step: Step, environment: EnvironmentDraft) -> Iterator[Problem]:
    """Yield a problem for each source of a step whose encoding Spark cannot decode or cannot split into lines.

    Sources are not checked if the environment is invalid.
    """
    loaded = environment.environment
    if loaded is None:
        return
    for name, read in step.reads.items():
        source = loaded.sources.get(read.source or "")
        if not isinstance(source, FileSource | KafkaSource) or source.format not in ENCODED_FORMATS:
            continue
        options = {**source.options, **read.options}
        encoding = encoding_of(options)
        if encoding is None:  # UTF-8
            continue
        is_set_in_step = encoding_of(read.options) is not None
        locations = draft.locations if is_set_in_step else environment.locations
        path = ("steps", step.name, "reads", name) if is_set_in_step else ("sources", str(read.source))
        where, subject = locations.where(*path, "options"), f"{describe_path(path)}: encoding '{encoding}'"
        accepts_any_charset = is_true({**loaded.settings, **step.settings}, ANY_CHARSET_SETTING)
        if encoding.upper() not in SUPPORTED_ENCODINGS and not accepts_any_charset:
            fix = f"write one of {', '.join(SUPPORTED_ENCODINGS)}, or set {ANY_CHARSET_SETTING}: true under settings"
            yield Problem(where, f"{subject} is not supported", fix)
            continue
        is_split_into_lines = isinstance(source, FileSource) and not _reads_whole_files(source, options)
        if is_split_into_lines and encoding.upper() in MULTI_BYTE_ENCODINGS:
            yield from _check_line_ends(where, subject, encoding, options)


def _reads_whole_files(source: FileSource, options: Mapping[str, Setting]) -> bool:
    """Return whether Spark decodes each file as a whole.

    Otherwise Spark first splits the bytes of a file into lines, and then decodes each line.
    """
    return is_true(options, "wholetext" if source.format == "text" else "multiLine")


def _check_line_ends(where: str, subject: str, encoding: str, options: Mapping[str, Setting]) -> Iterator[Problem]:
    """Yield a problem if Spark cannot find the ends of lines in files of a multi-byte encoding."""
    if encoding.upper() in ("UTF-16", "UTF-32"):
        fix = "write UTF-16LE or UTF-16BE and lineSep, or multiLine: true (wholetext: true for text)"
        message = f"{subject} cannot be read line by line: only the start of a file has a byte order mark"
        yield Problem(where, message, fix)
    elif option(options, "lineSep") is None:
        yield Problem(where, f"{subject} needs lineSep, because a line end is several bytes", 'write lineSep: "\\n"')
