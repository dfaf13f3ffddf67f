"""What a sweep runs: tasks x contestants x seeds, each a plain run folder. It must not know what was run already."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from bisac.algos import Algorithm, make_algorithm
from bisac.errors import BisacError
from bisac.runs.folder import env_folder
from bisac.runs.settings import Settings
from bisac.sweeps.contestants import Contestant, by_name, fields_of
from bisac.sweeps.folders import run_folder

MOST_SEEDS = 10_000
"""Seeds that one command takes: more are a typing error."""


def parse_seeds(text: str) -> tuple[int, ...]:
    """Read seeds as they are typed: 0:5 for 0 to 4, or 0,3,7."""
    try:
        if ":" in text:
            start, _, stop = text.partition(":")
            span = range(int(start or 0), int(stop))
            if span.stop - span.start > MOST_SEEDS:  # more than a range can count, perhaps
                raise BisacError(f"--seeds {text} names too many seeds; {MOST_SEEDS:,} are the most.")
            seeds = tuple(span)
        else:
            seeds = tuple(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError as error:
        raise BisacError(f"--seeds must be like 0:5 or 0,3,7, got '{text}'.") from error
    if not seeds:
        raise BisacError(f"--seeds {text} names no seed; 0:5 means 0 to 4.")
    if min(seeds) < 0:
        raise BisacError(f"--seeds {text} has a negative seed; seeds are 0 or more.")
    return seeds


@dataclass(frozen=True)
class PlannedRun:
    """One run of a sweep, with all that is needed to start it and to recognise it."""

    env: str
    """The task's id."""
    contestant: Contestant
    """Whose run it is."""
    seed: int
    """The run's seed."""
    folder: Path
    """The run's folder."""
    algorithm: Algorithm[Any]
    """The algorithm with all hyperparameters settled."""
    settings: Settings
    """The run's settings, settled."""
    arguments: tuple[str, ...]
    """The arguments of `bisac` that start the run."""
    beside: tuple["PlannedRun", ...] = ()
    """Runs that the same process trains side by side with it."""

    @property
    def all(self) -> tuple["PlannedRun", ...]:
        """The runs that its process trains."""
        return self, *self.beside


@dataclass(frozen=True)
class Plan:
    """Tasks x contestants x seeds, alike in all else."""

    envs: tuple[str, ...]
    """The tasks' ids."""
    contestants: tuple[Contestant, ...]
    """Whoever is compared."""
    seeds: tuple[int, ...]
    """The seeds of every contestant on every task."""
    settings: Settings
    """The settings of every run, but for the seed and the folder."""
    hyperparameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The hyperparameters of every contestant that has them and does not say otherwise."""

    def __post_init__(self):
        for kind, names in (
            ("environment", [env_folder(env) for env in self.envs]),
            ("contestant", [contestant.name for contestant in self.contestants]),
        ):
            if not names:
                raise BisacError(f"a sweep needs at least one {kind}.")
            for name in names:
                if names.count(name) > 1:
                    raise BisacError(f"the sweep has two {kind}s called {name}; leave one out.")
        by_name(self.contestants)

    def runs(self, out: Path) -> Iterator[PlannedRun]:
        """Give every run, all of a seed before those of the next: cut short at any time, they still compare."""
        for seed, env, contestant in product(self.seeds, self.envs, self.contestants):
            yield self.run(env, contestant, seed, run_folder(out, env, contestant.name, seed))

    def run(self, env: str, contestant: Contestant, seed: int, folder: Path) -> PlannedRun:
        """Return one run, with all that the plan and the task's preset settle."""
        algo, begin = contestant.algo, contestant.start(env)
        shared = {name: value for name, value in self.hyperparameters.items() if name in fields_of(algo)}
        start, own = make_algorithm(algo, begin.hyperparameters), shared | contestant.hyperparameters
        algorithm = dataclasses.replace(start, **own)
        settings = dataclasses.replace(self.settings, seed=seed, out=folder)
        settled = dataclasses.replace(settings, num_envs=settings.num_envs or begin.num_envs).settled(algorithm)
        algorithm.check_num_envs(settled.num_envs or 1)
        flags = ["--preset", contestant.preset] if contestant.preset != "auto" else []
        flags += [*_flags(Settings(), settings), *_flags(start, algorithm)]
        return PlannedRun(
            env,
            contestant,
            seed,
            folder,
            algorithm.settled(),
            settled,
            ("train", env, "--algo", algo, *flags),
        )


def _flags(start: Any, settings: Any) -> Iterator[str]:
    """Give the words to type to get from some settings to others."""
    for field in dataclasses.fields(settings):
        flag, value = f"--{field.name.replace('_', '-')}", getattr(settings, field.name)
        if value == getattr(start, field.name):
            continue
        if field.name == "env_arg":
            yield from (word for arg in value for word in (flag, arg))
        elif isinstance(value, bool):
            yield flag if value else flag.replace("--", "--no-")
        else:
            yield from (flag, *map(str, value if isinstance(value, tuple) else (value,)))
