"""The commands `bisac train` and `bisac resume`: from what was typed to a run that is shown while it goes."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from bisac.algos import REGISTRY, Algorithm
from bisac.api import outcomes_of
from bisac.cli.arguments import flag_value, parse
from bisac.cli.config_file import with_config
from bisac.display.run import RunDisplay, show_outcome
from bisac.errors import BisacError
from bisac.presets import PRESETS, Preset, Start, chosen
from bisac.runs.config import MAY_CHANGE
from bisac.runs.events import EventStream
from bisac.runs.resume import resume
from bisac.runs.settings import Settings, TrackerName
from bisac.runs.start import start
from bisac.sweeps.plan import parse_seeds


@dataclasses.dataclass(frozen=True)
class TrainCommand:
    """Train a policy on a task; the run folder holds all that comes out."""

    env: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ENV")]
    """The task's id, such as Hopper-v5, my_package:MyEnv-v0 or classic/pendulum; 'bisac list' names some."""
    run: Settings
    hyperparameters: Algorithm[Any]
    algo: str = "bisac"
    """The algorithm; 'bisac list' names them."""
    preset: Preset = "auto"
    """Start from what suits the task; that, with few updates for cheap simulators (fast); that, with the paper's own
    algorithm (paper); or plain defaults (none)."""
    seeds: str | None = None
    """Seeds as 0:8 (0 to 7) or 0,3,7: as many runs side by side, a folder each, on tasks of the device alone."""
    config: Path | None = None
    """Flags in a file: FILE.toml with algo = "sac", steps = 100000 and so on, or a run's config.json; what you type
    counts more."""


@dataclasses.dataclass(frozen=True)
class ResumeCommand:
    """Go on with a run from its last checkpoint, bit for bit as if it had never stopped."""

    runs: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN")]
    """The run folder; several go on side by side, if they were begun with --seeds."""
    steps: int | None = None
    """Environment steps to train for in all; by default as many as the run was started for."""
    checkpoint_every: int | None = None
    """Steps between checkpoints from now on; by default as before."""
    track: TrackerName | None = None
    """Who is told, too, what the log tells, from now on; by default as before. All is told to one that is new."""


def run_train(arguments: list[str], console: Console) -> int:
    """Run `bisac train`, and return the exit code."""
    command, begin = parse_train(arguments)
    if told := begin.listed():
        console.print(f"preset: {told} (--preset none for plain defaults)", highlight=False, soft_wrap=True)
    seeds = None if command.seeds is None else parse_seeds(command.seeds)
    if seeds is not None and flag_value(arguments, "seed") is not None:
        raise BisacError("give --seed for one run, or --seeds for several side by side.")
    return _show(start(command.env, command.hyperparameters, command.run, seeds), console)


def parse_train(arguments: list[str]) -> tuple[TrainCommand, Start]:
    """Return what was typed, and what the preset sets, from which the command's defaults come."""
    arguments = with_config(arguments)
    algo = _named_algorithm(arguments)
    if {"-h", "--help"} & set(arguments):  # its defaults are those of the task, if one is named
        begin = next((known for word in arguments if (known := chosen("auto", word, algo)).hyperparameters), Start({}))
    else:
        named = PRESETS.get(flag_value(arguments, "preset") or "auto", "auto")
        first = parse(_prefilled(REGISTRY[algo], chosen(named, None, algo)), "train", arguments)  # it knows no task yet
        begin = chosen(first.preset, first.env, algo)
    return parse(_prefilled(REGISTRY[algo], begin), "train", arguments), begin


def _named_algorithm(arguments: list[str]) -> str:
    """Return the value of --algo, read before parsing: it decides which flags there are."""
    name = flag_value(arguments, "algo") or "bisac"
    if name not in REGISTRY:
        raise BisacError(f"there is no algorithm '{name}'; there are {', '.join(REGISTRY)}.")
    return name


def _prefilled(kind: type[Algorithm[Any]], begin: Start) -> type[TrainCommand]:
    """Return the command with that algorithm's hyperparameters; they and the settings start from the preset."""
    fields = [
        ("hyperparameters", kind, dataclasses.field(default=kind(**begin.hyperparameters))),
        ("run", Settings, dataclasses.field(default=Settings(num_envs=begin.num_envs))),
    ]
    named = {"__doc__": TrainCommand.__doc__, "__module__": __name__}
    return dataclasses.make_dataclass("TrainCommand", fields, bases=(TrainCommand,), namespace=named, frozen=True)


def run_resume(arguments: list[str], console: Console) -> int:
    """Run `bisac resume`, and return the exit code."""
    _refuse_changes(arguments)
    command = parse(ResumeCommand, "resume", arguments)
    if not command.runs:
        raise BisacError("name the run folder to go on with: bisac resume RUN.")
    return _show(resume(command.runs, command.steps, command.checkpoint_every, track=command.track), console)


def _refuse_changes(arguments: list[str]) -> None:
    """Say why a setting of `train` is none of `resume`."""
    kinds = (Settings, *REGISTRY.values())
    settings = {field.name.replace("_", "-") for kind in kinds for field in dataclasses.fields(kind)}
    fixed = (settings | {"algo"}) - {name.replace("_", "-") for name in MAY_CHANGE}
    for flag in arguments:
        if (name := flag.removeprefix("--").partition("=")[0].replace("_", "-")) in fixed and flag.startswith("--"):
            raise BisacError(
                f"--{name} cannot change within a run; 'bisac resume' takes --steps, --checkpoint-every and "
                f"--track. Start "
                f"another run with 'bisac train'."
            )


def _show(events: EventStream, console: Console) -> int:
    """Train in front of the user, and return the exit code."""
    outcomes = outcomes_of(events, RunDisplay(console))
    for outcome in outcomes:
        show_outcome(outcome, console)
    stopped_by = outcomes[0].stopped_by
    return 128 + stopped_by if stopped_by is not None else 0
