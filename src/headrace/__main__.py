"""The command `headrace`, which is also `python -m headrace`."""

from headrace import interrupts


def run() -> None:
    """Run the command line; a signal ends it at any moment from here on."""
    interrupts.exit_on_signal()
    from headrace.cli import main

    interrupts.call(lambda: main(prog_name="headrace"))


if __name__ == "__main__":
    run()
