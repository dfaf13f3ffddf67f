"""What a sweep runs: tasks x contestants x seeds, each a plain run folder."""

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, get_args

from bisac.algos import REGISTRY, Algorithm, make_algorithm
from bisac.errors import BisacError
from bisac.presets import Preset, Start, chosen
from bisac.runs.folder import env_folder
from bisac.runs.settings import TrainSettings

PRESET = "preset"
"""The setting of a contestant that is no hyperparameter: sac:preset=fast."""


@dataclass(frozen=True)
class Contestant:
    """An algorithm with settings of its own."""

    algo: str
    settings: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """What it is called, and its folder."""
        return "-".join([self.algo, *self.words])

    @property
    def preset(self) -> Preset:
        """The preset that its settings start from."""
        return dict(self.settings).get(PRESET, "auto")

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Its settings but the preset."""
        return {name: value for name, value in self.settings if name != PRESET}

    def start(self, env: str) -> Start:
        """What its preset sets on a task."""
        return chosen(self.preset, env, self.algo)

    @property
    def words(self) -> list[str]:
        """Its settings: one that is a word by that word, any other with its name."""
        return [value if isinstance(value, str) else f"{name}={_text(value)}" for name, value in self.settings]


def parse_contestant(text: str) -> Contestant:
    """`sac`, `sac:preset=fast`, or `bisac:refinement=correction,epsilon=1`."""
    algo, _, rest = text.partition(":")
    make_algorithm(algo, {})  # complains where there is none of that name
    settings = []
    for part in rest.split(",") if rest else []:
        name, value = _named(part, f"a setting of --algo {algo}")
        settings.append((name, _preset(algo, value) if name == PRESET else _value(algo, name, value)))
    return Contestant(algo, tuple(settings))


def vary(contestants: Sequence[Contestant], sweeps: Sequence[str]) -> list[Contestant]:
    """Each contestant with every value of the swept hyperparameters that it has."""
    varied = list(contestants)
    for sweep in sweeps:
        name, values = _named(sweep, "--sweep")
        having = [contestant for contestant in varied if name in fields_of(contestant.algo)]
        if not having:
            raise BisacError(f"--sweep {sweep}: no algorithm of this sweep has the hyperparameter '{name}'.")
        for contestant in having:
            if name in dict(contestant.settings):
                raise BisacError(f"--sweep {sweep}: {contestant.name} sets {name} itself; leave one out.")
        varied = [
            dataclasses.replace(c, settings=(*c.settings, (name, _value(c.algo, name, value)))) if c in having else c
            for c in varied
            for value in (values.split(",") if c in having else [""])
        ]
    return varied


def parse_hyperparameters(
    arguments: Sequence[str], contestants: Sequence[Contestant]
) -> tuple[list[str], dict[str, Any]]:
    """Take the flags that are hyperparameters of any contestant out of a command line; the rest, and their values."""
    owners = {name: contestant.algo for contestant in contestants for name in fields_of(contestant.algo)}
    rest, texts, name = [], {}, None
    for word in arguments:
        if word.startswith("--"):
            flag, assigned, value = word.removeprefix("--").replace("-", "_").partition("=")
            positive = flag.removeprefix("no_")
            name = next((n for n in (flag, positive) if n in owners), None)
            if name:
                texts[name] = [value] if assigned else []
                if isinstance(fields_of(owners[name])[name], bool) and not assigned:
                    texts[name] = ["true" if name == flag else "false"]
                continue
        if name:
            texts[name].append(word)
        else:
            rest.append(word)
    return rest, {name: _value(owners[name], name, "x".join(words)) for name, words in texts.items()}


def parse_seeds(text: str) -> tuple[int, ...]:
    """`0:5` for 0 to 4, or `0,3,7`."""
    try:
        if ":" in text:
            start, _, stop = text.partition(":")
            seeds = tuple(range(int(start or 0), int(stop)))
        else:
            seeds = tuple(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError as error:
        raise BisacError(f"--seeds must be like 0:5 or 0,3,7, got '{text}'.") from error
    if not seeds:
        raise BisacError(f"--seeds {text} names no seed; 0:5 means 0 to 4.")
    return seeds


@dataclass(frozen=True)
class PlannedRun:
    """One run of a sweep."""

    env: str
    contestant: Contestant
    seed: int
    folder: Path
    algorithm: Algorithm[Any]
    settings: TrainSettings
    arguments: tuple[str, ...]
    """Of `bisac`, which start it."""


@dataclass(frozen=True)
class Plan:
    """Tasks x contestants x seeds, alike in all else."""

    envs: tuple[str, ...]
    contestants: tuple[Contestant, ...]
    seeds: tuple[int, ...]
    settings: TrainSettings
    """Of every run, but for the seed and the folder."""
    hyperparameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Of every contestant that has them and does not say otherwise."""

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

    def runs(self, out: Path) -> Iterator[PlannedRun]:
        """Every run, all of a seed before those of the next: cut short at any time, they still compare."""
        for seed, env, contestant in product(self.seeds, self.envs, self.contestants):
            yield self._run(env, contestant, seed, out / env_folder(env) / contestant.name / f"seed{seed}")

    def _run(self, env: str, contestant: Contestant, seed: int, folder: Path) -> PlannedRun:
        algo, begin = contestant.algo, contestant.start(env)
        shared = {name: value for name, value in self.hyperparameters.items() if name in fields_of(algo)}
        start, own = make_algorithm(algo, begin.hyperparameters), shared | contestant.hyperparameters
        algorithm = dataclasses.replace(start, **own)
        settings = dataclasses.replace(self.settings, seed=seed, out=folder)
        settled = dataclasses.replace(settings, num_envs=settings.num_envs or begin.num_envs).settled(algorithm)
        algorithm.check_num_envs(settled.width)
        flags = ["--preset", contestant.preset] if contestant.preset != "auto" else []
        flags += [*_flags(TrainSettings(), settings), *_flags(start, algorithm)]
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
    """What to type to get from some settings to others."""
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


def fields_of(algo: str) -> dict[str, Any]:
    """An algorithm's hyperparameters and their defaults, by name."""
    return {field.name: field.default for field in dataclasses.fields(REGISTRY[algo])}


def _named(text: str, where: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not (found and name.strip()):
        raise BisacError(f"{where} must be name=value, got '{text}'.")
    return name.strip().replace("-", "_"), value.strip()


def _value(algo: str, name: str, text: str) -> Any:
    """A hyperparameter as typed: JSON where it can be read as that, else a word; widths as 64x64."""
    several = isinstance(fields_of(algo).get(name), tuple)
    value = tuple(map(_scalar, text.split("x") if text else ())) if several else _scalar(text)
    # Complains where there is no such hyperparameter, or it takes no such value. The classic form takes all of them:
    # whether this one fits the others is judged when all are known.
    form = {"critic_norm": "none"} if "critic_norm" in fields_of(algo) else {}
    make_algorithm(algo, form | {name: value})
    return value


def _preset(algo: str, text: str) -> str:
    """A preset as typed."""
    which = next((name for name in get_args(Preset) if name == text), None)
    if which is None:
        raise BisacError(f"--algo {algo}: preset must be one of {', '.join(get_args(Preset))}, got '{text}'.")
    chosen(which, None, algo)  # complains where the algorithm has none of that name
    return which


def _scalar(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _text(value: Any) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
