"""`bisac train` and `bisac resume`."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from bisac.algos import REGISTRY, Algorithm
from bisac.cli.arguments import flag_value, parse
from bisac.console import TrainingDisplay, show_outcome
from bisac.errors import BisacError
from bisac.presets import Preset, listed, preset
from bisac.training.settings import MAY_CHANGE, TrainSettings
from bisac.training.train import Outcome, resume_training, run_training


@dataclasses.dataclass(frozen=True)
class TrainCommand:
    """Train a policy on a Gymnasium environment; the run folder holds all that comes out."""

    env: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ENV")]
    """The environment's id, such as Hopper-v5 or my_package:MyEnv-v0."""
    run: TrainSettings
    hyperparameters: Algorithm[Any]
    algo: str = "bisac"
    """The algorithm; 'bisac list' names them."""
    preset: Preset = "auto"
    """Start from the settings known to suit the task, or (none) from the plain defaults."""


@dataclasses.dataclass(frozen=True)
class ResumeCommand:
    """Go on with a run from its last checkpoint, bit for bit as if it had never stopped."""

    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """The run folder."""
    steps: int | None = None
    """Environment steps to train for in all; by default as many as the run was started for."""
    checkpoint_every: int | None = None
    """Steps between checkpoints from now on; by default as before."""


def run_train(arguments: list[str], console: Console) -> int:
    """Train."""
    command, known = parse_train(arguments)
    if known:
        console.print(f"preset: {listed(known)} (--preset none for plain defaults)", highlight=False, soft_wrap=True)
    return _show(lambda display: run_training(command.env, command.hyperparameters, command.run, display), console)


def parse_train(arguments: list[str]) -> tuple[TrainCommand, dict[str, Any]]:
    """What was typed, and the preset that its hyperparameters start from."""
    algo = _named_algorithm(arguments)
    if {"-h", "--help"} & set(arguments):  # its defaults are those of the task, if one is named
        known = next((known for word in arguments if (known := preset(word, algo))), {})
    else:
        plain = parse(_prefilled(REGISTRY[algo], {}), "train", arguments)
        known = preset(plain.env, algo) if plain.preset == "auto" else {}
    return parse(_prefilled(REGISTRY[algo], known), "train", arguments), known


def _named_algorithm(arguments: list[str]) -> str:
    """The value of --algo, read before parsing: it decides which flags there are."""
    name = flag_value(arguments, "algo") or "bisac"
    if name not in REGISTRY:
        raise BisacError(f"there is no algorithm '{name}'; there are {', '.join(REGISTRY)}.")
    return name


def _prefilled(kind: type[Algorithm[Any]], known: dict[str, Any]) -> type[TrainCommand]:
    """The command with that algorithm's hyperparameters, which start from the preset."""
    field = ("hyperparameters", kind, dataclasses.field(default=kind(**known)))
    named = {"__doc__": TrainCommand.__doc__, "__module__": __name__}
    return dataclasses.make_dataclass("TrainCommand", [field], bases=(TrainCommand,), namespace=named, frozen=True)


def run_resume(arguments: list[str], console: Console) -> int:
    """Go on with a run."""
    _refuse_changes(arguments)
    command = parse(ResumeCommand, "resume", arguments)
    changes = command.steps, command.checkpoint_every
    return _show(lambda display: resume_training(command.run, display, *changes), console)


def _refuse_changes(arguments: list[str]) -> None:
    """Say why a setting of `train` is none of `resume`."""
    kinds = (TrainSettings, *REGISTRY.values())
    settings = {field.name.replace("_", "-") for kind in kinds for field in dataclasses.fields(kind)}
    fixed = (settings | {"algo"}) - {name.replace("_", "-") for name in MAY_CHANGE}
    for flag in arguments:
        if (name := flag.removeprefix("--").partition("=")[0].replace("_", "-")) in fixed and flag.startswith("--"):
            raise BisacError(
                f"--{name} cannot change within a run; 'bisac resume' takes --steps and --checkpoint-every. Start "
                f"another run with 'bisac train'."
            )


def _show(train: Callable[[TrainingDisplay], Outcome], console: Console) -> int:
    """Train in front of the user; returns the exit code."""
    display = TrainingDisplay(console)
    try:
        outcome = train(display)
    finally:
        display.end()
    show_outcome(outcome, console)
    return 128 + outcome.stopped_by if outcome.stopped_by is not None else 0
