"""The algorithms, by the name users give them."""

import dataclasses
import difflib
from functools import partial
from typing import Any

from bisac.algos.base import Algorithm, OffPolicy, OnPolicy, Rollout
from bisac.algos.bidirectional_sac import BidirectionalSAC
from bisac.algos.ddpg import DDPG, TD3
from bisac.algos.forward_sac import ForwardSAC, ForwardSACActor
from bisac.algos.ppo import A2C, PPO
from bisac.algos.sac import SAC
from bisac.errors import BisacError

REGISTRY: dict[str, type[Algorithm[Any]]] = {
    "bisac": BidirectionalSAC,
    "sac": SAC,
    "forward-sac": ForwardSAC,
    "forward-sac-actor": ForwardSACActor,
    "ddpg": DDPG,
    "td3": TD3,
    "ppo": PPO,
    "a2c": A2C,
}

__all__ = [
    "A2C",
    "DDPG",
    "PPO",
    "REGISTRY",
    "SAC",
    "TD3",
    "Algorithm",
    "BidirectionalSAC",
    "ForwardSAC",
    "ForwardSACActor",
    "OffPolicy",
    "OnPolicy",
    "Rollout",
    "algorithm_from_json",
    "algorithm_name",
    "make_algorithm",
]


def algorithm_name(algo: Algorithm[Any]) -> str:
    """The name under which users know an algorithm."""
    return next(name for name, kind in REGISTRY.items() if kind is type(algo))


def make_algorithm(algo: str | Algorithm[Any], hyperparameters: dict[str, Any]) -> Algorithm[Any]:
    """The algorithm of that name with these hyperparameters, or the given one with them replaced."""
    if isinstance(algo, str) and algo not in REGISTRY:
        raise BisacError(f"there is no algorithm '{algo}'; there are {', '.join(REGISTRY)}.")
    make = REGISTRY[algo] if isinstance(algo, str) else partial(dataclasses.replace, algo)
    kind = REGISTRY[algo] if isinstance(algo, str) else type(algo)
    known = [field.name for field in dataclasses.fields(kind)]
    for name in hyperparameters:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=2)
            hint = f"; did you mean {' or '.join(close)}?" if close else f"; it has {', '.join(known)}."
            raise BisacError(f"{kind.__name__} has no hyperparameter '{name}'{hint}")
    return make(**hyperparameters)


def algorithm_from_json(name: str, settings: dict[str, Any]) -> Algorithm[Any]:
    """The algorithm that a file of ours names: JSON's lists are the tuples that settings hold.

    A file that says nothing of normalised critics is older than they are, and means classic ones.
    """
    tuples = {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}
    if any(field.name == "critic_norm" for field in dataclasses.fields(make_algorithm(name, {}))):
        tuples = {"critic_norm": "none"} | tuples
    return make_algorithm(name, tuples).settled()
