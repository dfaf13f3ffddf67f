"""Completion in shells: `bisac --print-completion bash` prints the script that knows every command and flag."""

import dataclasses
import operator
from functools import reduce
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console

from bisac.algos import REGISTRY
from bisac.cli.arguments import LAYOUT
from bisac.cli.evaluate import EvalCommand
from bisac.cli.export import CardCommand, ExportCommand
from bisac.cli.listing import ListCommand
from bisac.cli.report import ReportCommand
from bisac.cli.sweep import SweepCommand
from bisac.cli.train import ResumeCommand, TrainCommand
from bisac.cli.tune import TuneCommand
from bisac.errors import BisacError
from bisac.figures import FIGURES
from bisac.runs.settings import Settings

SHELLS = ("bash", "zsh", "fish")


def run_completion(arguments: list[str], _console: Console) -> int:
    """Print the script for a shell, and return the exit code."""
    if len(arguments) != 1 or arguments[0] not in SHELLS:
        raise BisacError(f"--print-completion takes the shell's name: {', '.join(SHELLS)}.")
    kinds = {
        "train": _train(),
        "resume": ResumeCommand,
        "eval": EvalCommand,
        "sweep": SweepCommand,
        "report": ReportCommand,
        "tune": TuneCommand,
        "export": ExportCommand,
        "card": CardCommand,
        "figure": reduce(operator.or_, (_named(kind, name) for name, kind in FIGURES.items())),
        "list": ListCommand,
    }
    commands = reduce(operator.or_, (_named(kind, name) for name, kind in kinds.items()))
    # tyro prints the script and ends the program with code 0.
    return tyro.cli(commands, prog="bisac", args=["--tyro-write-completion", arguments[0], "-"], config=LAYOUT)


def _named(kind: Any, name: str) -> Any:
    return Annotated[kind, tyro.conf.subcommand(name, prefix_name=False)]


def _train() -> type[Any]:
    """Return `bisac train` with the settings of all algorithms, since it is not known which one is being typed."""
    every = {field.name: field for kind in reversed(REGISTRY.values()) for field in dataclasses.fields(kind)}
    settings = [(name, field.type, dataclasses.field(default=field.default)) for name, field in every.items()]
    anyone = dataclasses.make_dataclass("Hyperparameters", settings, frozen=True)
    fields: list[Any] = [
        ("hyperparameters", anyone, dataclasses.field(default=anyone())),
        ("run", Settings, dataclasses.field(default=Settings())),
        ("algo", Literal[tuple(REGISTRY)], dataclasses.field(default="bisac")),
    ]
    return dataclasses.make_dataclass("TrainCommand", fields, bases=(TrainCommand,), frozen=True)
