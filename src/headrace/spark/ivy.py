"""Download jars with pyspark's copy of Ivy: from Maven Central, or as `engine.ivy_settings` configures."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from headrace.errors import SetupError
from headrace.spark import java

# With its default settings, Ivy also downloads the POM of each jar and the parents of the POM. Then ten jars take 10 s
# instead of 4 s.
_SETTINGS = """<ivysettings>
  <settings defaultResolver="public"/>
  <timeout-constraints>
    <timeout-constraint name="timeouts" connectionTimeout="5000" readTimeout="60000"/>
  </timeout-constraints>
  <resolvers>
    <ibiblio name="public" m2compatible="true" usepoms="false" timeoutConstraint="timeouts"/>
  </resolvers>
</ivysettings>
"""
_MODULE = """<ivy-module version="2.0">
  <info organisation="headrace" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""
_DEPENDENCY = '    <dependency org="{}" name="{}" rev="{}" transitive="false" conf="default->default"/>'
_FIXES = {  # from a regular expression to the fix for the messages of Ivy that it matches
    r"Host \S+ not found|Server access [Ee]rror.*": (
        "connect this machine to the network once, or configure a mirror in engine.ivy_settings "
        "(behind a proxy: JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=… -Dhttps.proxyPort=…')"
    ),
    r"invalid (?:sha1|md5): \w+=\w+ \w+=\w+": (
        "try again; if it fails again, configure another mirror in engine.ivy_settings"
    ),
    r"(?:failed to load settings|ivy configuration file not found).*": (
        "correct the file that engine.ivy_settings names"
    ),
    r"\S+#\S+;\S+: not found": "in engine.ivy_settings, configure a mirror that has this jar",
}


def jar_file(coordinates: str) -> str:
    """Return the file name of a jar by its coordinates, 'group:artifact:version'."""
    _, artifact, version = coordinates.split(":")
    return f"{artifact}-{version}.jar"


def download(coordinates: Sequence[str], directory: Path, *, settings: Path | None, log: Path) -> None:
    """Download jars into an empty directory, without verifying them.

    `settings` is the user's settings file for Ivy; None for the default settings of Headrace. If Ivy fails, write its
    output to the file `log` and raise SetupError.
    """
    dependencies = (_DEPENDENCY.format(*jar.split(":")) for jar in coordinates)
    module, default_settings = directory / "ivy.xml", directory / "ivysettings.xml"
    module.write_text(_MODULE.format(dependencies="\n".join(dependencies)), encoding="utf-8")
    default_settings.write_text(_SETTINGS, encoding="utf-8")
    command: list[str | Path] = [
        java.executable(),
        "-XX:TieredStopAtLevel=1",
        "-jar",
        _ivy(),
        "-settings",
        settings or default_settings,
    ]
    command += ["-ivy", module, "-cache", directory / "cache"]
    command += ["-types", "jar", "-retrieve", f"{directory}/[artifact]-[revision].[ext]"]
    result = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if result.returncode != 0:
        log.write_text(result.stdout + result.stderr, encoding="utf-8")
        reason, fix = _reason_and_fix(result.stdout + result.stderr)
        raise SetupError(f"the jars could not be downloaded: {reason}", where=str(log), fix=fix)


def _ivy() -> Path:
    """Return the jar of Ivy in the installed pyspark."""
    pyspark = importlib.util.find_spec("pyspark")  # faster than importing it
    directories = pyspark.submodule_search_locations if pyspark else None
    jars = [jar for directory in directories or () for jar in Path(directory, "jars").glob("ivy-*.jar")]
    if not jars:
        raise SetupError("pyspark is not installed", fix="pip install 'headrace[local]'")
    return jars[0]


def _reason_and_fix(output: str) -> tuple[str, str]:
    """Return the reason for which Ivy failed, according to its output, and the fix for this reason."""
    for pattern, fix in _FIXES.items():
        if match := re.search(pattern, output):
            return match[0].strip(), fix
    return "Ivy failed", "see the log named above for the reason"
