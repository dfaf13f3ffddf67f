"""The command `bisac sweep`: from what was typed to a plan, an engine, and a sweep that is shown while it goes."""

import dataclasses
import shlex
from pathlib import Path
from typing import Annotated

import jax
import tyro
from rich.console import Console

from bisac.cli.arguments import flag_words, from_file, parse
from bisac.cli.many import Placement, settings_in
from bisac.collect.dispatch import random_return, spec_of
from bisac.display.sweep import show_plan, show_sweep, show_sweep_outcome
from bisac.display.terminal import follow
from bisac.errors import BisacError
from bisac.runs.settings import SharedSettings
from bisac.runs.trackers import prepare
from bisac.storage import exclusive
from bisac.sweeps.contestants import parse_contestant, parse_hyperparameters, vary
from bisac.sweeps.engines.base import Engine
from bisac.sweeps.estimate import guess_seconds
from bisac.sweeps.events import SweepFinished
from bisac.sweeps.execute import execute
from bisac.sweeps.plan import Plan, PlannedRun, parse_seeds
from bisac.sweeps.progress import progress_of, remaining_seconds
from bisac.sweeps.record import enrol


@dataclasses.dataclass(frozen=True)
class SweepCommand:
    """Train algorithms on tasks with several seeds, each run in a process of its own; run again, it goes on.

    Hyperparameters are flags, as of 'bisac train', and hold for all algorithms that have them.
    """

    env: tuple[str, ...]
    """The environments' ids."""
    algo: tuple[str, ...]
    """Algorithms, with settings of their own if need be: sac sac:preset=fast bisac:spread=kl,epsilon=1."""
    steps: int
    """Environment steps of each run."""
    out: Path
    """The sweep's folder; runs lie in it as TASK/CONTESTANT/seedK."""
    run: SharedSettings
    placement: Placement
    file: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="FILE.toml")] = None
    """Flags in a file: env = ["Hopper-v5"], steps = 100000, and so on; those on the command line come after."""
    seeds: str = "0:5"
    """Seeds as 0:5 (0 to 4) or 0,3,7."""
    sweep: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """A hyperparameter with several values: epsilon=0.1,1,10, or hidden=64x64,256x256; may be repeated."""
    dry_run: bool = False
    """Print the plan and stop."""


def run_sweep(arguments: list[str], console: Console) -> int:
    """Run the command; returns its exit code."""
    words = _with_file(arguments)
    command, plan = parse_sweep(words)
    jax.config.update("jax_platforms", "cpu")  # what is measured here must not take the memory of a GPU of the runs
    env_arg, out = plan.settings.env_arg, command.placement.folder(command.out)
    specs = {env: spec_of(env, env_arg) for env in plan.envs}  # a typo is told before hours have passed
    runs, engine = list(plan.runs(out)), command.placement.make_engine()
    told = {run.folder: progress_of(run) for run in runs}
    seconds = measured = remaining_seconds(runs, told, engine.slots)
    if seconds is None:
        with console.status("guessing how long it takes"):
            seconds = guess_seconds(runs, specs, engine.slots, command.placement.cores)
    complete = sum(progress.complete for progress in told.values())
    show_plan(plan, len(runs), complete, engine.slots, seconds, measured is None, console)
    if command.dry_run:
        return 0
    with exclusive(out, f"another sweep runs in {out}; wait for it, or choose another --out."):
        with console.status("measuring what a random policy gets"):
            enrol(plan, out, ["bisac", "sweep", *words], lambda env: random_return(env, env_arg))
        prepare(command.run.track)
        outcome = _execute(runs, engine, console)
    show_sweep_outcome(outcome, runs, str(command.out), shlex.join(["bisac", "sweep", *arguments]), console)
    if outcome.stopped_by is not None:
        return 128 + outcome.stopped_by
    return 1 if outcome.failed else 0


def _execute(runs: list[PlannedRun], engine: Engine, console: Console) -> SweepFinished:
    """Run the sweep and show its events; returns the last of them."""
    with execute(runs, engine) as events:
        outcome = follow(events, show_sweep, console)
    assert isinstance(outcome, SweepFinished)
    return outcome


def _with_file(arguments: list[str]) -> list[str]:
    """Return the arguments, with those of the file that stands first in its place."""
    if arguments and arguments[0].endswith(".toml"):
        return [*from_file(Path(arguments[0]), arguments[1:]), *arguments[1:]]
    return arguments


def parse_sweep(arguments: list[str]) -> tuple[SweepCommand, Plan]:
    """Return what was typed, and the plan it makes."""
    algos = [parse_contestant(word) for word in flag_words(arguments, "algo")]
    words, hyperparameters = parse_hyperparameters(arguments, algos)
    command = parse(SweepCommand, "sweep", words)
    if command.file is not None:  # one that stands first was read already
        raise BisacError(f"{command.file}: a file of flags comes first and ends in .toml, as in bisac sweep FILE.toml.")
    settings = settings_in(command.out, command.run, steps=command.steps)
    contestants = tuple(vary([parse_contestant(word) for word in command.algo], command.sweep))
    return command, Plan(command.env, contestants, parse_seeds(command.seeds), settings, hyperparameters)
