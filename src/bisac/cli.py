"""The command line. Each command is a dataclass that tyro turns into flags and help."""

import dataclasses
import os
import shlex
import signal
import tomllib
from collections.abc import Callable
from contextlib import closing
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bisac.algos import REGISTRY, Algorithm
from bisac.api import load, policy_file
from bisac.console import TrainingDisplay, show_outcome
from bisac.envs.backends import BackendName
from bisac.envs.spec import PAPER_TASKS, Task
from bisac.errors import BisacError
from bisac.experiments.estimate import guess_seconds
from bisac.experiments.figures import FIGURES, write_figure
from bisac.experiments.local_engine import LocalEngine
from bisac.experiments.plan import Plan, parse_contestant, parse_hyperparameters, parse_seeds, vary
from bisac.experiments.ray_engine import RayEngine
from bisac.experiments.report.write import write_report
from bisac.experiments.sweep import Engine, enrol, execute, progress_of, remaining_seconds
from bisac.experiments.watch import SweepDisplay, show_findings, show_plan, show_sweep_outcome
from bisac.presets import GAMMA, Preset, preset
from bisac.storage import exclusive, read_file
from bisac.training.evaluate import HELD_OUT_STREAM, Evaluator, random_return
from bisac.training.settings import MAY_CHANGE, TrainSettings
from bisac.training.train import Outcome, resume_training, run_training
from bisac.training.video import record_video
from bisac.types import Spec

WELCOME = """[bold]bisac[/]: Bidirectional Soft Actor-Critic for continuous control

  bisac train Pendulum-v1 --steps 6000      train, in about a minute
  bisac train Hopper-v5 --algo sac          another task, another algorithm
  bisac eval runs/Pendulum-v1/bisac/seed0   judge it; --video films it
  bisac resume runs/Hopper-v5/sac/seed0     go on with a run that was stopped or killed
  bisac sweep --env Hopper-v5 Walker2d-v5 --algo sac bisac --seeds 0:5 --steps 100000 --out sweeps/first
                                            compare algorithms over tasks and seeds; run again, it goes on
  bisac report sweeps/first                 the comparison, with honest statistics, as a page
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


@dataclasses.dataclass(frozen=True)
class SweepCommand:
    """Train algorithms on tasks with several seeds, each run in a process of its own; run again, it goes on.

    Hyperparameters are flags, as of 'bisac train', and hold for all algorithms that have them.
    """

    env: tuple[str, ...]
    """The environments' ids."""
    algo: tuple[str, ...]
    """Algorithms, with settings of their own if need be: sac sac:critic=vdn-a bisac:refinement=correction,epsilon=1."""
    steps: int
    """Environment steps of each run."""
    out: Path
    """The sweep's folder; runs lie in it as TASK/CONTESTANT/seedK."""
    file: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="FILE.toml")] = None
    """Flags in a file: env = ["Hopper-v5"], steps = 100000, and so on; those on the command line come after."""
    seeds: str = "0:5"
    """Seeds as 0:5 (0 to 4) or 0,3,7."""
    sweep: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """A hyperparameter with several values: epsilon=0.1,1,10, or hidden=64x64,256x256; may be repeated."""
    num_envs: int | None = None
    """Environments stepped together; by default 1, and 8 for the algorithms that learn from fresh rollouts."""
    eval_every: int | None = None
    """Steps between evaluations; by default a hundredth of the steps, and at least 1000."""
    eval_episodes: int = 10
    """Episodes in each evaluation, with the deterministic policy."""
    checkpoint_every: int = 10_000
    """Steps between checkpoints, from which an interrupted run goes on."""
    env_arg: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """An argument of the environments as key=value; may be repeated."""
    backend: BackendName = "sync"
    """Where to step the environments."""
    engine: Literal["local", "ray"] = "local"
    """Where to run: on this machine, or on a Ray cluster whose nodes share the sweep's folder."""
    address: str | None = None
    """The Ray cluster's, such as auto or ray-head:6379; by default a cluster of this machine alone is started."""
    cores: int = 1
    """Cores of each run."""
    jobs: int | None = None
    """Runs at a time on this machine; by default as many as its cores allow."""
    dry_run: bool = False
    """Print the plan and stop."""


@dataclasses.dataclass(frozen=True)
class ReportCommand:
    """Compare the contestants of a sweep: one HTML page, and beside it figures (PNG, PDF) and tables (CSV, LaTeX)."""

    sweep: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="SWEEP")]
    """The sweep's folder; it may still run."""
    out: Path | None = None
    """The page; by default report/report.html in the sweep's folder."""
    reference: str | None = None
    """The contestant to compare with; by default sac, or the first one where there is none."""


def run(arguments: list[str]) -> int:
    """Run a command line; returns the exit code."""
    commands: dict[str, Callable[[list[str], Console], int]] = {
        "train": _train,
        "resume": _resume,
        "eval": _eval,
        "sweep": _sweep,
        "report": _report,
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


def _sweep(arguments: list[str], console: Console) -> int:
    words = _from_file(arguments)
    algos = [parse_contestant(word) for word in _words(words, "algo")]
    words, hyperparameters = parse_hyperparameters(words, algos)
    command = _parse(SweepCommand, "sweep", words)
    shared = {field.name for field in dataclasses.fields(TrainSettings)} - {"seed", "out", "overwrite"}
    settings = TrainSettings(**{name: getattr(command, name) for name in shared})
    contestants = tuple(vary([parse_contestant(word) for word in command.algo], command.sweep))
    plan = Plan(command.env, contestants, parse_seeds(command.seeds), settings, hyperparameters)
    specs = {env: _spec(env, command.env_arg) for env in plan.envs}  # a typo is told before hours have passed
    out = (
        command.out.resolve() if command.engine == "ray" else command.out
    )  # a node's processes have folders of their own
    runs = list(plan.runs(out))
    engine = _engine(command)
    told = {run.folder: progress_of(run) for run in runs}
    complete = sum(progress.complete for progress in told.values())
    measured = remaining_seconds(runs, told, engine.slots)
    with console.status("guessing how long it takes"):
        seconds = guess_seconds(runs, specs, engine.slots, command.cores) if measured is None else measured
    show_plan(plan, len(runs), complete, engine.slots, seconds, measured is None, console)
    if command.dry_run:
        return 0
    with exclusive(out, f"another sweep runs in {out}; wait for it, or choose another --out."):
        with console.status("measuring what a random policy gets"):
            enrol(plan, out, lambda env: random_return(Task(env, command.env_arg)))
        with SweepDisplay(console) as display:
            outcome = execute(runs, engine, display)
    show_sweep_outcome(outcome, runs, str(command.out), shlex.join(["bisac", "sweep", *arguments]), console)
    if outcome.stopped_by is not None:
        return 128 + outcome.stopped_by
    return 1 if outcome.failed else 0


def _spec(env_id: str, env_args: tuple[str, ...]) -> Spec:
    task = Task(env_id, env_args)
    with closing(task.make()) as env:
        return task.spec(env)


def _engine(command: SweepCommand) -> Engine:
    if command.cores < 1 or (command.jobs is not None and command.jobs < 1):
        raise BisacError("--cores and --jobs must be at least 1.")
    if command.engine == "ray":
        if command.jobs is not None:
            raise BisacError("--jobs is for --engine local; on a Ray cluster, --cores decides how many runs fit.")
        return RayEngine(command.address, command.cores)
    if command.address is not None:
        raise BisacError("--address is for --engine ray.")
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return LocalEngine(command.jobs or max(1, available // command.cores), command.cores)


def _report(arguments: list[str], console: Console) -> int:
    command = _parse(ReportCommand, "report", arguments)
    page = command.out or command.sweep / "report" / "report.html"
    with console.status("gathering and resampling"):
        analysis, paths = write_report(command.sweep, page, command.reference)
    show_findings(analysis, console)
    console.print(f"report        {page}", highlight=False, soft_wrap=True)
    console.print(f"beside it     {', '.join(path.name for path in paths[1:])}", highlight=False, soft_wrap=True)
    return 0


def _from_file(arguments: list[str]) -> list[str]:
    """The arguments with those of the TOML file that stands first, before them."""
    if not arguments or not arguments[0].endswith(".toml"):
        return arguments
    try:
        known = tomllib.loads(read_file(Path(arguments[0])).decode())
    except ValueError as error:
        raise BisacError(f"{arguments[0]} is no TOML: {error}.") from error
    words = []
    for name, value in known.items():
        flag, values = f"--{name.replace('_', '-')}", value if isinstance(value, list) else [value]
        if value is True:
            words.append(flag)
        elif name in ("sweep", "env-arg", "env_arg"):  # these are repeated, one value each
            words += [word for each in values for word in (flag, str(each))]
        elif value is not False:
            words += [flag, *map(str, values)]
    return [arguments[0], *words, *arguments[1:]]


def _words(arguments: list[str], name: str) -> list[str]:
    """The words after a flag of several, read before parsing."""
    found: list[str] = []
    for index, word in enumerate(arguments):
        if word == f"--{name}":
            found = list(takewhile(lambda other: not other.startswith("--"), arguments[index + 1 :]))
    return found


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
