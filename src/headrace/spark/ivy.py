"""Downloads jars by the Ivy that pyspark ships: from the registry it knows, or where the user says."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from headrace.errors import SetupError
from headrace.spark import java

# Ivy's own settings would fetch each jar's POM and its parents as well: 10 s instead of 4 s for ten jars.
_SETTINGS = """<ivysettings>
  <settings defaultResolver="public"/>
  <timeout-constraints>
    <timeout-constraint name="patience" connectionTimeout="5000" readTimeout="60000"/>
  </timeout-constraints>
  <resolvers>
    <ibiblio name="public" m2compatible="true" usepoms="false" timeoutConstraint="patience"/>
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
_TROUBLE = {
    r"Host \S+ not found|Server access [Ee]rror.*": (
        "connect this machine to the network once, or name a mirror in engine.ivy_settings "
        "(behind a proxy: JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=… -Dhttps.proxyPort=…')"
    ),
    r"invalid (?:sha1|md5): \w+=\w+ \w+=\w+": ("try again; if it stays, name another mirror in engine.ivy_settings"),
    r"(?:failed to load settings|ivy configuration file not found).*": ("mend the file that engine.ivy_settings names"),
    r"\S+#\S+;\S+: not found": "name a mirror that has it in engine.ivy_settings",
}


def jar_file(coordinates: str) -> str:
    """'group:artifact:version' -> the name that the jar is downloaded under."""
    _, artifact, version = coordinates.split(":")
    return f"{artifact}-{version}.jar"


def download(coordinates: Sequence[str], directory: Path, *, settings: Path | None, log: Path) -> None:
    """Put these jars, unchecked, into an empty directory; what Ivy said of a failure is in the log."""
    dependencies = (_DEPENDENCY.format(*each.split(":")) for each in coordinates)
    module, own_settings = directory / "ivy.xml", directory / "ivysettings.xml"
    module.write_text(_MODULE.format(dependencies="\n".join(dependencies)), encoding="utf-8")
    own_settings.write_text(_SETTINGS, encoding="utf-8")
    command: list[str | Path] = [
        java.executable(),
        "-XX:TieredStopAtLevel=1",
        "-jar",
        _ivy(),
        "-settings",
        settings or own_settings,
    ]
    command += ["-ivy", module, "-cache", directory / "cache"]
    command += ["-types", "jar", "-retrieve", f"{directory}/[artifact]-[revision].[ext]"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        log.write_text(done.stdout + done.stderr, encoding="utf-8")
        reason, fix = _reason(done.stdout + done.stderr)
        raise SetupError(f"the jars could not be downloaded: {reason}", where=str(log), fix=fix)


def _ivy() -> Path:
    spark = importlib.util.find_spec("pyspark")  # finds it without importing it
    places = spark.submodule_search_locations if spark else None
    found = [ivy for place in places or () for ivy in Path(place, "jars").glob("ivy-*.jar")]
    if not found:
        raise SetupError("pyspark is not installed here", fix="pip install 'headrace[local]'")
    return found[0]


def _reason(output: str) -> tuple[str, str]:
    for pattern, fix in _TROUBLE.items():
        if match := re.search(pattern, output):
            return match[0].strip(), fix
    return "Ivy failed", "the log named above says why"
