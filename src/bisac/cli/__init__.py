"""The command line. Each command is a dataclass that tyro turns into flags and help, in a file of its own."""

import signal
from collections.abc import Callable

from rich.console import Console
from rich.markup import escape

from bisac import __version__
from bisac.algos import find_installed
from bisac.cli.completion import run_completion
from bisac.cli.evaluate import run_eval
from bisac.cli.examples import welcome
from bisac.cli.export import run_card, run_export
from bisac.cli.figure import run_figure
from bisac.cli.listing import run_list
from bisac.cli.report import run_report
from bisac.cli.sweep import run_sweep
from bisac.cli.train import run_resume, run_train
from bisac.cli.tune import run_tune
from bisac.display.terminal import open_console
from bisac.errors import BisacError

COMMANDS: dict[str, Callable[[list[str], Console], int]] = {
    "train": run_train,
    "resume": run_resume,
    "eval": run_eval,
    "sweep": run_sweep,
    "report": run_report,
    "tune": run_tune,
    "export": run_export,
    "card": run_card,
    "figure": run_figure,
    "list": run_list,
}
"""What runs each command."""


def run(arguments: list[str]) -> int:
    """Run a command line; returns the exit code."""
    console, problems = open_console(), open_console(stderr=True)
    if not arguments or arguments[0] in ("-h", "--help"):
        console.print(welcome(), highlight=False, soft_wrap=True)
        return 0
    if arguments[0] == "--version":
        console.print(f"bisac {__version__}", highlight=False)
        return 0
    try:
        commands = COMMANDS | {"--print-completion": run_completion}
        if arguments[0] not in commands:
            raise BisacError(f"there is no command '{arguments[0]}'; there are {', '.join(COMMANDS)}.")
        find_installed()
        return commands[arguments[0]](arguments[1:], console)
    except BisacError as error:
        problems.print(f"[red]bisac:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        return 2
    except OSError as error:  # a full disk, a folder that vanished: not ours to mend
        where = f": {error.filename}" if error.filename else ""
        problems.print(
            f"[red]bisac:[/] {escape(f'{error.strerror or error}{where}')}.", highlight=False, soft_wrap=True
        )
        return 2
    except KeyboardInterrupt:
        problems.print("[red]bisac:[/] interrupted.", highlight=False)
        return 128 + signal.SIGINT
