"""The command line. Each command is a dataclass that tyro turns into flags and help."""

import dataclasses
import signal
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, TypeVar

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bisac.algos import REGISTRY, Algorithm
from bisac.api import load, policy_file
from bisac.console import TrainingDisplay, show_outcome
from bisac.envs.spec import PAPER_TASKS, Task
from bisac.errors import BisacError
from bisac.experiments.figures import FIGURES, write_figure
from bisac.presets import GAMMA, Preset, preset
from bisac.training.evaluate import HELD_OUT_STREAM, Evaluator
from bisac.training.settings import MAY_CHANGE, TrainSettings
from bisac.training.train import Outcome, resume_training, run_training
from bisac.training.video import record_video

WELCOME = """[bold]bisac[/]: Bidirectional Soft Actor-Critic for continuous control

  bisac train Pendulum-v1 --steps 6000      train, in about a minute
  bisac train Hopper-v5 --algo sac          another task, another algorithm
  bisac eval runs/Pendulum-v1/bisac/seed0   judge it; --video films it
  bisac resume runs/Hopper-v5/sac/seed0     go on with a run that was stopped or killed
  bisac figure                              the paper's figures, from runs of your own
  bisac list                                algorithms and tasks

Each command explains itself with --help; 'bisac train --algo NAME --help' shows that algorithm's hyperparameters."""


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


@dataclasses.dataclass(frozen=True)
class EvalCommand:
    """Evaluate a trained policy with its deterministic actions."""

    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """A run folder, a checkpoint's folder or a policy file."""
    episodes: int = 20
    """Episodes to evaluate."""
    seed: int = 0
    """Seed of the episodes; training's own evaluations use others whatever the seed."""
    env: str | None = None
    """Another environment of the same sizes than the one it was trained on."""
    env_arg: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """An argument of the environment as key=value, in place of the one it was trained with; may be repeated."""
    video: bool = False
    """Film one episode as an mp4 beside the policy."""


def run(arguments: list[str]) -> int:
    """Run a command line; returns the exit code."""
    commands: dict[str, Callable[[list[str], Console], int]] = {
        "train": _train,
        "resume": _resume,
        "eval": _eval,
        "figure": _figure,
        "list": _list,
    }
    console, problems = Console(), Console(stderr=True)
    if not arguments or arguments[0] in ("-h", "--help"):
        console.print(WELCOME, highlight=False)
        return 0
    try:
        if arguments[0] not in commands:
            raise BisacError(f"there is no command '{arguments[0]}'; there are {', '.join(commands)}.")
        return commands[arguments[0]](arguments[1:], console)
    except BisacError as error:
        problems.print(f"[red]bisac:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        return 2
    except OSError as error:  # a full disk, a folder that vanished: not ours to mend
        problems.print(f"[red]bisac:[/] {error.strerror}: {error.filename or 'while writing'}.", highlight=False)
        return 2
    except KeyboardInterrupt:
        problems.print("[red]bisac:[/] interrupted.", highlight=False)
        return 128 + signal.SIGINT


def _train(arguments: list[str], console: Console) -> int:
    name = _named_algorithm(arguments)
    kind, known = REGISTRY[name], {} if _flag(arguments, "preset") == "none" else _preset(arguments, name)
    command = _parse(_prefilled(kind, known), "train", arguments)
    if known:
        console.print(f"preset: {_listed(known)} (--preset none for plain defaults)", highlight=False, soft_wrap=True)
    return _show(lambda display: run_training(command.env, command.hyperparameters, command.run, display), console)


def _resume(arguments: list[str], console: Console) -> int:
    _refuse_changes(arguments)
    command = _parse(ResumeCommand, "resume", arguments)
    changes = command.steps, command.checkpoint_every
    return _show(lambda display: resume_training(command.run, display, *changes), console)


def _show(train: Callable[[TrainingDisplay], Outcome], console: Console) -> int:
    """Train in front of the user; returns the exit code."""
    display = TrainingDisplay(console)
    try:
        outcome = train(display)
    finally:
        display.end()
    show_outcome(outcome, console)
    return 128 + outcome.stopped_by if outcome.stopped_by is not None else 0


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


def _eval(arguments: list[str], console: Console) -> int:
    command = _parse(EvalCommand, "eval", arguments)
    if command.episodes < 1:
        raise BisacError(f"--episodes must be at least 1, got {command.episodes}.")
    policy = load(command.run)
    env = command.env or policy.spec.env_id
    task = Task(env, command.env_arg if command.env else policy.spec.env_args + command.env_arg)
    evaluator = Evaluator(task, command.episodes, command.seed, HELD_OUT_STREAM)
    policy.check_fits(evaluator.spec)
    with console.status(f"evaluating {command.episodes} episodes of {env}"):
        returns = evaluator(policy).returns
    evaluator.close()
    console.print(
        f"return over {len(returns)} episodes of {env}: mean [bold]{returns.mean():,.1f}[/]  std {returns.std():,.1f}  "
        f"min {returns.min():,.1f}  max {returns.max():,.1f}",
        highlight=False,
        soft_wrap=True,
    )
    if command.video:
        with console.status("filming an episode"):
            path = record_video(policy, task, policy_file(command.run).parent / "videos", command.seed)
        console.print(f"video: {path}", highlight=False, soft_wrap=True)
    return 0


def _figure(arguments: list[str], console: Console) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        figures = Table("figure", "what it shows", title="bisac figure NAME [RUN ...] [--out DIR]", box=None)
        figures.title_justify = "left"
        for name, kind in FIGURES.items():
            figures.add_row(f"[bold]{name}[/]", (kind.__doc__ or "").splitlines()[0])
        console.print(figures)
        console.print("\n'bisac figure NAME --help' tells what it measures, and its arguments.", highlight=False)
        return 0
    name, *rest = arguments
    if name not in FIGURES:
        raise BisacError(f"there is no figure '{name}'; there are {', '.join(FIGURES)}.")
    command = _parse(FIGURES[name], f"figure {name}", rest)
    with console.status(name) as status:
        made, paths = write_figure(name, command, lambda text: status.update(escape(text)))
    for line in (*made.summary, f"written: {', '.join(map(str, paths))}"):
        console.print(escape(line), highlight=False, soft_wrap=True)
    return 0


def _list(arguments: list[str], console: Console) -> int:
    if arguments:
        raise BisacError("'bisac list' takes no arguments.")
    algorithms = Table("algorithm", "what it does", title="Algorithms (--algo)", title_justify="left", box=None)
    for name, kind in REGISTRY.items():
        algorithms.add_row(f"[bold]{name}[/]", (kind.__doc__ or "").splitlines()[0])
    tasks = Table("task", "simulator", "preset", title="The paper's tasks", title_justify="left", box=None)
    for name, simulator in PAPER_TASKS.items():
        tasks.add_row(f"[bold]{name}[/]", simulator, _presets_of(name))
    console.print(algorithms, "", tasks)
    console.print("\nAny other Gymnasium environment with a bounded Box of actions works too.", highlight=False)
    return 0


def _presets_of(task: str) -> str:
    """The preset's settings, and after a colon those of one algorithm alone."""
    shared = {"gamma": GAMMA[name]} if (name := task.rpartition("-v")[0]) in GAMMA else {}
    own = {algo: {k: v for k, v in preset(task, algo).items() if k not in shared} for algo in REGISTRY}
    parts = [_listed(shared)] if shared else []
    return "; ".join([*parts, *(f"{algo}: {_listed(settings)}" for algo, settings in own.items() if settings)])


def _listed(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def _named_algorithm(arguments: list[str]) -> str:
    """The value of --algo, read before parsing: it decides which flags there are."""
    name = _flag(arguments, "algo") or "bisac"
    if name not in REGISTRY:
        raise BisacError(f"there is no algorithm '{name}'; there are {', '.join(REGISTRY)}.")
    return name


def _flag(arguments: list[str], name: str) -> str | None:
    """The last value of a flag, if it is there."""
    found = None
    for flag, value in zip_longest(arguments, arguments[1:], fillvalue=""):
        if flag == f"--{name}":
            found = value
        elif flag.startswith(f"--{name}="):
            found = flag.removeprefix(f"--{name}=")
    return found


def _prefilled(kind: type[Algorithm[Any]], known: dict[str, Any]) -> type[TrainCommand]:
    """The command with that algorithm's hyperparameters, which start from the preset."""
    field = ("hyperparameters", kind, dataclasses.field(default=kind(**known)))
    named = {"__doc__": TrainCommand.__doc__, "__module__": __name__}
    return dataclasses.make_dataclass("TrainCommand", [field], bases=(TrainCommand,), namespace=named, frozen=True)


def _preset(arguments: list[str], algo: str) -> dict[str, Any]:
    """The preset of the task named in the arguments, read before parsing: it decides the flags' defaults."""
    return next((known for word in arguments if (known := preset(word, algo))), {})


Command = TypeVar("Command")


def _parse(command: Callable[..., Command], name: str, arguments: list[str]) -> Command:
    config = (tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff)
    return tyro.cli(command, prog=f"bisac {name}", args=arguments, config=config)
