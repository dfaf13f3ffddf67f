"""Where a search looks: the fields' own ranges and choices, with what a user types in their place."""

import dataclasses
from collections.abc import Iterable
from typing import Any

from bisac.algos import Algorithm
from bisac.algos.search import SEARCH, Choice, Dimension, Range
from bisac.errors import BisacError
from bisac.sweeps.contestants import fields_of, kinds_of, read_named, read_value

Space = dict[str, Dimension]
"""Where to look for each hyperparameter, by its name."""


def default_space(algo: Algorithm[Any]) -> Space:
    """Return what the algorithm's fields say, less what this form of the algorithm refuses."""
    found = {field.name: field.metadata[SEARCH] for field in dataclasses.fields(algo) if SEARCH in field.metadata}
    return {name: dimension for name, dimension in found.items() if _refusal(algo, name, dimension) is None}


def make_space(algo: Algorithm[Any], name: str, fixed: Iterable[str], typed: Iterable[str]) -> Space:
    """Return where to look: the defaults, less the fixed hyperparameters, with those that were typed in their place.

    `algo` has the fixed hyperparameters already; `name` is what users call it.
    """
    fixed = set(fixed)
    space = {key: dimension for key, dimension in default_space(algo).items() if key not in fixed}
    for text in typed:
        key, dimension = parse_dimension(name, text)
        if key in fixed:
            raise BisacError(f"--search {text}: {key} is set for all trials; leave one out.")
        if refusal := _refusal(algo, key, dimension):
            raise BisacError(f"--search {text}: {refusal}")
        space[key] = dimension
    if not space:
        raise BisacError(f"there is nothing to search: {name} names no ranges; give some, as --search gamma=0.9,0.99.")
    return space


def parse_dimension(algo: str, text: str) -> tuple[str, Dimension]:
    """Read where to look for a hyperparameter, as typed: critic_lr=1e-4:1e-2:log, or batch_size=128,256."""
    name, values = read_named(text, "--search")
    if name not in fields_of(algo):
        read_value(algo, name, "0")  # complains, with the nearest name
    try:
        if ":" not in values:
            return name, Choice(tuple(read_value(algo, name, value) for value in values.split(",")))
        low, high, *rest = values.split(":")
        if rest not in ([], ["log"]):
            raise BisacError("a range is LOW:HIGH or LOW:HIGH:log.")
        ends = [read_value(algo, name, end) for end in (low, high)]
        if not all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends):
            raise BisacError(f"a range has numbers at its ends, not {low} and {high}.")
        return name, Range(*ends, log=bool(rest), whole=float not in kinds_of(algo, name))
    except BisacError as error:
        raise BisacError(f"--search {text}: {error}") from error


def to_json(dimension: Dimension) -> dict[str, Any]:
    """Return a range or a choice as JSON has it."""
    return dataclasses.asdict(dimension)


def from_json(value: dict[str, Any]) -> Dimension:
    """Return what `to_json` was given."""
    if "values" in value:
        return Choice(tuple(tuple(each) if isinstance(each, list) else each for each in value["values"]))
    return Range(**value)


def _refusal(algo: Algorithm[Any], name: str, dimension: Dimension) -> BisacError | None:
    try:
        for value in dimension.samples:
            dataclasses.replace(algo, **{name: value})
    except BisacError as error:
        return error
    return None
