"""The command line. Each command parses its options, makes one call and prints the result.

The module of a command is imported only when the command is used.
"""

from __future__ import annotations

import importlib
from typing import Any

import click

from headrace import __version__
from headrace.cli.help_examples import examples
from headrace.errors import HeadraceError

# `headrace --help` lists the commands by task. Each summary is the first line of the command's own help.
TASKS = {
    "Create and check a bundle": {
        "init": "Create a bundle.",
        "doctor": "Check that this machine has what a run needs.",
        "check": "Find every mistake in the bundle without running it.",
        "graph": "Show how the steps of a pipeline are connected.",
        "schema": "Write the schemas for editors.",
    },
    "Run a pipeline": {
        "run": "Run a pipeline.",
        "status": "Show what each step of a pipeline has processed.",
        "stop": "Stop a deployed job, or a run on this machine.",
        "show": "Show the rows of a table.",
        "reset": "Start steps over.",
        "checkpoint": "Inspect, compare, rename and adopt checkpoints.",
    },
    "Deploy a release": {
        "build": "Build a release.",
        "plan": "Show what a deployment would change.",
        "deploy": "Deploy a release.",
        "promote": "Deploy the release of one environment to another, byte for byte.",
        "rollback": "Deploy an earlier release again.",
        "history": "Show what was deployed, when and by whom.",
        "jobs": "Show the deployed jobs and their runs.",
        "start": "Start a deployed job, or resume a stopped one.",
        "logs": "Show the output of a deployed job's run.",
        "destroy": "Delete an environment's jobs and releases.",
    },
    "Test deployments": {
        "workspace": "Serve a Databricks workspace on this machine.",
    },
}
COMMANDS = {name: summary for commands in TASKS.values() for name, summary in commands.items()}
# The command `run` is the function `run` in the module `run_command` of this package, and so on. MODULES names the
# modules that contain several commands.
MODULES = {
    **dict.fromkeys(("deploy", "destroy", "plan", "promote", "rollback"), "deploy_commands"),
    **dict.fromkeys(("history", "jobs", "logs", "start", "stop"), "job_commands"),
}
VERSION_HELP = "Show the version, and the versions of Spark and Delta that it works with, and exit."
PATH_FIX = "check its owner, its permissions and the free disk space, or set another path in the environment's file"


class LazyCommands(click.Group):
    """A group that lists its commands without importing their modules."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command with this name and return it; return None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        module_name = MODULES.get(cmd_name, f"{cmd_name}_command")
        command = getattr(importlib.import_module(f"headrace.cli.{module_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command as click does, but suggest a similar command for an unknown name.

        click 8.4 and newer suggests only commands whose modules are imported.
        """
        from difflib import get_close_matches

        if args[0] not in COMMANDS and (matches := get_close_matches(args[0], COMMANDS, n=1)):
            ctx.fail(f"No such command {args[0]!r}: did you mean {matches[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, grouped by task."""
        width = max(map(len, COMMANDS))
        for task, commands in TASKS.items():
            with formatter.section(task):
                formatter.write_dl([(name.ljust(width), summary) for name, summary in commands.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. If the user can correct an error, print it without its traceback and exit with 1.

        Exit with 130 after Ctrl-C. Any other error is raised.
        """
        try:
            return super().invoke(ctx)
        except HeadraceError as error:
            click.echo(str(error), err=True)
            ctx.exit(1)
        except OSError as error:
            if error.filename is None:  # without a path, the user could not correct the error
                raise
            click.echo(f"Error: {error.strerror}\n  at   {error.filename}\n  fix: {PATH_FIX}", err=True)
            ctx.exit(1)
        except KeyboardInterrupt as interrupt:
            click.echo(str(interrupt) or "Stopped.", err=True)
            ctx.exit(130)


def _print_version(context: click.Context, option: click.Parameter, is_given: bool) -> None:
    """Print the versions of Headrace and of the Spark and Delta that it works with, and end the command."""
    if is_given and not context.resilient_parsing:
        from headrace.spark.jars import supported_versions

        spark, delta = supported_versions()
        click.echo(f"headrace {__version__} (Spark {' or '.join(spark)}, Delta {delta})")
        context.exit()


@click.group(
    cls=LazyCommands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=examples("headrace init weather", "headrace check --help", "headrace run orders --follow"),
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help=VERSION_HELP)
def main() -> None:
    """Run Spark streaming jobs on a laptop, check them before they run, and deploy them to production."""
