"""Contestants of a sweep: algorithms with settings of their own, as they are typed on a command line or in a file."""

import dataclasses
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from bisac.algos import REGISTRY, make_algorithm
from bisac.errors import BisacError
from bisac.presets import PRESETS, Preset, Start, chosen

PRESET = "preset"
"""The setting of a contestant that is no hyperparameter: sac:preset=fast."""


@dataclass(frozen=True)
class Contestant:
    """An algorithm with settings of its own."""

    algo: str
    """The algorithm's name, as users type it."""
    settings: tuple[tuple[str, Any], ...] = ()
    """Names and values of its own settings, in the order they were given in."""

    @property
    def name(self) -> str:
        """What it is called, in reports and as the name of its folder."""
        return "-".join([self.algo, *self.words])

    @property
    def earlier_name(self) -> str:
        """What it was called before names told apart settings that take the same words."""
        return "-".join([self.algo, *(v if isinstance(v, str) else f"{n}={as_typed(v)}" for n, v in self.settings)])

    @property
    def preset(self) -> Preset:
        """The preset that its settings start from."""
        return dict(self.settings).get(PRESET, "auto")

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Its own settings of the algorithm: all of them but the preset."""
        return {name: value for name, value in self.settings if name != PRESET}

    def start(self, env: str) -> Start:
        """Return what its preset sets on a task."""
        return chosen(self.preset, env, self.algo)

    @property
    def words(self) -> list[str]:
        """Its settings as parts of a name: one that is a word no other takes by that word, any other with its name."""
        return [
            value if isinstance(value, str) and _is_own_word(self.algo, name, value) else f"{name}={as_typed(value)}"
            for name, value in self.settings
        ]


def _is_own_word(algo: str, name: str, word: str) -> bool:
    """Return whether a word is one of this setting's choices and of no other's, so that it tells which one is meant.

    The words of settings that are no hyperparameters, the preset and those of earlier versions, are not known here.
    """
    choices = _choices(REGISTRY[algo])
    takers = [field for field, words in choices.items() if word in words]
    return takers == ([name] if name in choices else [])


@cache
def _choices(kind: type) -> dict[str, list[Any]]:
    """Return the words that each hyperparameter of an algorithm may be, by its name."""
    hints = get_type_hints(kind)
    return {field.name: _words(hints[field.name]) for field in dataclasses.fields(kind)}


def kinds_of(algo: str, name: str) -> list[Any]:
    """Return the types that a hyperparameter's value may have."""

    def flat(hint: Any) -> list[Any]:
        several = get_origin(hint) in (Union, UnionType)
        return [kind for part in get_args(hint) for kind in flat(part)] if several else [hint]

    return flat(get_type_hints(REGISTRY[algo])[name])


def _words(hint: Any) -> list[Any]:
    parts = get_args(hint)
    return list(parts) if get_origin(hint) is Literal else [word for part in parts for word in _words(part)]


def by_name(contestants: Iterable[Contestant]) -> list[Contestant]:
    """Return the contestants, each once; refuse one that stands under two names, as epsilon=1 and epsilon=1.0 do."""
    named = {contestant.name: contestant for contestant in contestants}
    first: dict[Contestant, str] = {}
    for name, contestant in named.items():
        if (other := first.setdefault(contestant, name)) != name:
            raise BisacError(f"{name} and {other} are the same contestant; call it {other} everywhere.")
    return list(named.values())


def parse_contestant(text: str) -> Contestant:
    """Read a contestant as it is typed: sac, sac:preset=fast, or bisac:spread=kl,epsilon=1."""
    algo, _, rest = text.partition(":")
    make_algorithm(algo, {})  # complains where there is none of that name
    settings = []
    for part in rest.split(",") if rest else []:
        name, value = read_named(part, f"a setting of --algo {algo}")
        settings.append((name, _preset(algo, value) if name == PRESET else read_value(algo, name, value)))
    return Contestant(algo, tuple(settings))


def vary(contestants: Sequence[Contestant], sweeps: Sequence[str]) -> list[Contestant]:
    """Return each contestant with every value of the swept hyperparameters that it has."""
    varied = list(contestants)
    for sweep in sweeps:
        name, values = read_named(sweep, "--sweep")
        having = [contestant for contestant in varied if name in fields_of(contestant.algo)]
        if not having:
            raise BisacError(f"--sweep {sweep}: no algorithm of this sweep has the hyperparameter '{name}'.")
        for contestant in having:
            if name in dict(contestant.settings):
                raise BisacError(f"--sweep {sweep}: {contestant.name} sets {name} itself; leave one out.")
        varied = [
            dataclasses.replace(c, settings=(*c.settings, (name, read_value(c.algo, name, value))))
            if c in having
            else c
            for c in varied
            for value in (values.split(",") if c in having else [""])
        ]
    return varied


def parse_hyperparameters(
    arguments: Sequence[str], contestants: Sequence[Contestant]
) -> tuple[list[str], dict[str, Any]]:
    """Take the flags that are hyperparameters of any contestant out of a command line.

    Returns the rest of the words, and the hyperparameters' values by name.
    """
    owners = {name: contestant.algo for contestant in contestants for name in fields_of(contestant.algo)}
    rest, texts, name = [], {}, None
    for word in arguments:
        if word.startswith("--"):
            flag, assigned, value = word.removeprefix("--").replace("-", "_").partition("=")
            positive = flag.removeprefix("no_")
            name = next((n for n in (flag, positive) if n in owners), None)
            if name:
                texts[name], default = [value] if assigned else [], fields_of(owners[name])[name]
                if isinstance(default, bool) and not assigned:
                    texts[name] = ["true" if name == flag else "false"]
                if assigned or isinstance(default, bool):
                    name = None  # what follows is not of this flag
                continue
        if name is None:
            rest.append(word)
            continue
        texts[name].append(word)
        if not isinstance(fields_of(owners[name])[name], tuple):
            name = None
    return rest, {name: read_value(owners[name], name, "x".join(words)) for name, words in texts.items()}


def fields_of(algo: str) -> dict[str, Any]:
    """Return an algorithm's hyperparameters and their defaults, by name."""
    return {field.name: field.default for field in dataclasses.fields(REGISTRY[algo])}


def read_named(text: str, where: str) -> tuple[str, str]:
    """Return the two sides of name=value as typed."""
    name, found, value = text.partition("=")
    if not (found and name.strip()):
        raise BisacError(f"{where} must be name=value, got '{text}'.")
    return name.strip().replace("-", "_"), value.strip()


def read_value(algo: str, name: str, text: str) -> Any:
    """Read a hyperparameter as typed: JSON where it can be read as that, else a word; widths as 64x64."""
    several = isinstance(fields_of(algo).get(name), tuple)
    value = tuple(map(_scalar, text.split("x") if text else ())) if several else _scalar(text)
    # Complains where there is no such hyperparameter, or it takes no such value. The classic form takes all of them:
    # whether this one fits the others is judged when all are known.
    form = {"critic_norm": "none"} if "critic_norm" in fields_of(algo) else {}
    make_algorithm(algo, form | {name: value})
    return value


def _preset(algo: str, text: str) -> str:
    """Read the name of a preset as typed."""
    which = PRESETS.get(text)
    if which is None:
        raise BisacError(f"--algo {algo}: preset must be one of {', '.join(PRESETS)}, got '{text}'.")
    chosen(which, None, algo)  # complains where the algorithm has none of that name
    return which


def _scalar(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def as_typed(value: Any) -> str:
    """Return a hyperparameter's value as `read_value` reads it."""
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
