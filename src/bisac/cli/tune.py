"""The command `bisac tune`: from what was typed to a search that is shown while it goes, and to its page."""

import dataclasses
import shlex
from pathlib import Path
from typing import Annotated

import jax
import tyro
from rich.console import Console

from bisac.cli.arguments import flag_value, parse
from bisac.cli.many import Placement, settings_in
from bisac.collect.dispatch import spec_of
from bisac.display.terminal import follow
from bisac.display.tuning import show_search, show_search_outcome, show_trials
from bisac.errors import BisacError
from bisac.report.tuning import write_tuning_page
from bisac.runs.settings import SharedSettings
from bisac.runs.trackers import prepare
from bisac.storage import exclusive
from bisac.sweeps.contestants import parse_contestant, parse_hyperparameters
from bisac.sweeps.engines.base import Engine
from bisac.tuning.record import Tuning, enrol
from bisac.tuning.search import SearchFinished, search
from bisac.tuning.space import make_space
from bisac.tuning.study import Study


@dataclasses.dataclass(frozen=True)
class TuneCommand:
    """Search for good hyperparameters on a task, each trial a run in a process of its own; run again, it goes on.

    Hyperparameters are flags, as of 'bisac train', and hold for all trials; what is given so is not searched.
    """

    env: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ENV")]
    """The environment's id."""
    steps: int
    """Environment steps of each trial."""
    out: Path
    """The search's folder; trials lie in it as trial-0000 and so on."""
    run: SharedSettings
    placement: Placement
    algo: str = "bisac"
    """The algorithm, with settings that are not searched if need be: sac:critic_norm=none."""
    trials: int = 50
    """Trials in all, with those of earlier times; the first has the algorithm's own defaults."""
    search: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Where to look for a hyperparameter: critic_lr=1e-4:1e-2:log, or batch_size=128,256; may be repeated."""
    prune: bool = True
    """End trials early that do worse than most did by then; --no-prune: let all run to their end."""
    seed: int = 0
    """Seed of the search; trial K trains with the seed that many above it."""


def run_tune(arguments: list[str], console: Console) -> int:
    """Run the command; returns its exit code."""
    command, tuning = parse_tune(arguments)
    jax.config.update("jax_platforms", "cpu")  # what is asked here must not take the memory of a GPU of the trials
    spec_of(command.env, command.run.env_arg)  # a typo is told before anything is written
    out = command.placement.folder(command.out)
    with exclusive(out, f"another search runs in {out}; wait for it, or choose another --out."):
        enrol(tuning, out, ["bisac", "tune", *arguments])
        study = Study(out, tuning.space, command.seed, tuning.evaluations, tuning.prune)
        engine = command.placement.make_engine()
        show_search(tuning, study.trials(), command.trials, engine.slots, console)
        prepare(command.run.track)
        outcome = _search(tuning, study, out, command.trials, engine, console)
        page = command.out / write_tuning_page(out).name if outcome.best else None  # as the user named it
    again = shlex.join(["bisac", "tune", *arguments])
    show_search_outcome(outcome, command.out, page, command.trials, again, console)
    if outcome.stopped_by is not None:
        return 128 + outcome.stopped_by
    return 1 if outcome.problems else 0


def parse_tune(arguments: list[str]) -> tuple[TuneCommand, Tuning]:
    """Return what was typed, and what it searches."""
    contestant = parse_contestant(flag_value(arguments, "algo") or "bisac")
    words, hyperparameters = parse_hyperparameters(arguments, [contestant])
    command = parse(TuneCommand, "tune", words)
    if command.trials < 1:
        raise BisacError(f"--trials must be at least 1, got {command.trials}.")
    settings = settings_in(command.out, command.run, steps=command.steps, seed=command.seed)
    dataclasses.replace(settings, seed=settings.seed + command.trials)  # complains of a seed that is too large
    own = {name: value for name, value in contestant.settings if name not in hyperparameters} | hyperparameters
    contestant = dataclasses.replace(contestant, settings=tuple(own.items()))
    plain = Tuning(command.env, contestant, settings, {}, command.prune)
    algorithm = plain.run(command.out, 0, {}).algorithm
    space = make_space(algorithm, contestant.algo, own, command.search)
    return command, dataclasses.replace(plain, space=space)


def _search(tuning: Tuning, study: Study, out: Path, trials: int, engine: Engine, console: Console) -> SearchFinished:
    """Search and show the events; returns the last of them."""
    with search(tuning, study, out, trials, engine) as events:
        outcome = follow(events, show_trials, console)
    assert isinstance(outcome, SearchFinished)
    return outcome
