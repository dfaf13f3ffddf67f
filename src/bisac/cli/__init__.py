"""The command line. Each command is a dataclass that tyro turns into flags and help, in a file of its own."""

import signal
from collections.abc import Callable

from rich.console import Console
from rich.markup import escape

from bisac import __version__
from bisac.algos import find_installed
from bisac.cli.evaluate import run_eval
from bisac.cli.export import run_card, run_export
from bisac.cli.figure import run_figure
from bisac.cli.listing import run_list
from bisac.cli.report import run_report
from bisac.cli.sweep import run_sweep
from bisac.cli.train import run_resume, run_train
from bisac.errors import BisacError

WELCOME = """[bold]bisac[/]: Bidirectional Soft Actor-Critic for continuous control

  bisac train Pendulum-v1 --steps 6000      train, in about a minute
  bisac train Hopper-v5 --algo sac          another task, another algorithm
  bisac eval runs/Pendulum-v1/bisac/seed0   judge it; --video films it
  bisac resume runs/Hopper-v5/sac/seed0     go on with a run that was stopped or killed
  bisac sweep --env Hopper-v5 Walker2d-v5 --algo sac bisac --seeds 0:5 --steps 100000 --out sweeps/first
                                            compare algorithms over tasks and seeds; run again, it goes on
  bisac report sweeps/first                 the comparison, with honest statistics, as a page
  bisac figure                              the paper's figures, from runs of your own
  bisac export runs/Hopper-v5/sac/seed0 --format onnx
                                            the policy for use without bisac; also stablehlo and numpy
  bisac card runs/Hopper-v5/sac/seed0       its model card
  bisac list                                algorithms and tasks
  bisac --version                           which version this is

Each command explains itself with --help; 'bisac train --algo NAME --help' shows that algorithm's hyperparameters."""


def run(arguments: list[str]) -> int:
    """Run a command line; returns the exit code."""
    commands: dict[str, Callable[[list[str], Console], int]] = {
        "train": run_train,
        "resume": run_resume,
        "eval": run_eval,
        "sweep": run_sweep,
        "report": run_report,
        "figure": run_figure,
        "export": run_export,
        "card": run_card,
        "list": run_list,
    }
    console, problems = Console(), Console(stderr=True)
    if not arguments or arguments[0] in ("-h", "--help"):
        console.print(WELCOME, highlight=False)
        return 0
    if arguments[0] == "--version":
        console.print(f"bisac {__version__}", highlight=False)
        return 0
    try:
        if arguments[0] not in commands:
            raise BisacError(f"there is no command '{arguments[0]}'; there are {', '.join(commands)}.")
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
