"""The command line: parse, one call, print. Commands are imported when they are called, not before."""

from __future__ import annotations

import importlib
from typing import Any

import click

from headrace import __version__
from headrace.errors import HeadraceError

# Each command is the function of that name in headrace.cli.<name>_command, or in the module named below. The text is
# the first line of its help.
COMMANDS = {
    "build": "Build a release.",
    "check": "Find every mistake in the bundle without running it.",
    "deploy": "Deploy a release.",
    "destroy": "Delete an environment's jobs and releases.",
    "doctor": "Say what this machine lacks.",
    "graph": "Show how a pipeline's steps hang together.",
    "history": "Show what was deployed, when and by whom.",
    "init": "Make a new bundle.",
    "jobs": "Show the deployed jobs and their runs.",
    "logs": "Show what a deployed job's run has said.",
    "plan": "Show what a deployment would change.",
    "promote": "Take the release that runs in one environment to another, byte for byte.",
    "rollback": "Go back to an earlier release.",
    "run": "Run a pipeline.",
    "show": "Show the rows of a table.",
    "start": "Start a deployed job, or let a stopped one run again.",
    "status": "Show how a pipeline's steps are doing.",
    "stop": "Stop a deployed job, or a run on this machine.",
    "workspace": "Serve a Databricks workspace on this machine.",
}
MODULES = {
    **dict.fromkeys(("deploy", "destroy", "plan", "promote", "rollback"), "deploy_commands"),
    **dict.fromkeys(("history", "jobs", "logs", "start", "stop"), "job_commands"),
}
PLACE = "see to its owner and permissions, and to free disk, or name another place in the environment's file"


class Commands(click.Group):
    """Knows its commands by name; imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported."""
        if cmd_name not in COMMANDS:
            return None
        command = getattr(
            importlib.import_module(f"headrace.cli.{MODULES.get(cmd_name, f'{cmd_name}_command')}"), cmd_name
        )
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what a user did wrong ends as its problems, not as a traceback."""
        try:
            return super().invoke(ctx)
        except HeadraceError as error:
            click.echo(str(error), err=True)
            ctx.exit(1)
        except OSError as error:
            if error.filename is None:  # not about a place of the user's
                raise
            click.echo(f"Error: {error.strerror}\n  at   {error.filename}\n  fix: {PLACE}", err=True)
            ctx.exit(1)
        except KeyboardInterrupt as interrupt:
            click.echo(str(interrupt) or "Stopped.", err=True)
            ctx.exit(130)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="headrace", message="%(prog)s %(version)s")
def main() -> None:
    """Run streaming jobs on a laptop, check them before they run, carry the same bytes to production."""
