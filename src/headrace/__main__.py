"""The command `headrace`, which can also be run as `python -m headrace`."""

from headrace import interrupts


def run() -> None:
    """Run the command line. A signal ends the process without a traceback, even while modules are imported."""
    interrupts.exit_on_signal()
    from headrace.cli import main

    interrupts.call(lambda: main(prog_name="headrace"))


if __name__ == "__main__":
    run()
