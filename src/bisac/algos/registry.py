"""The algorithms by the name users give them: how one is chosen, filled in, and read back from a file.

A new algorithm of ours is a file of its own beside this one, and a line in `REGISTRY`. A user's own registers itself:
`algos/plugins.py`.
"""

import dataclasses
from typing import Any

from bisac.algos.base import EARLIER, Algorithm
from bisac.algos.bidirectional_sac import BidirectionalSAC
from bisac.algos.ddpg import DDPG, TD3
from bisac.algos.forward_sac import ForwardSAC, ForwardSACActor
from bisac.algos.mpo import MPO
from bisac.algos.ppo import A2C, PPO
from bisac.algos.sac import SAC
from bisac.errors import BisacError, did_you_mean

REGISTRY: dict[str, type[Algorithm[Any]]] = {
    "bisac": BidirectionalSAC,
    "sac": SAC,
    "forward-sac": ForwardSAC,
    "forward-sac-actor": ForwardSACActor,
    "ddpg": DDPG,
    "td3": TD3,
    "mpo": MPO,
    "ppo": PPO,
    "a2c": A2C,
}
"""The class of every algorithm, by the name it has on the command line and in files."""


RETIRED = {"refinement": "penalty"}
"""Hyperparameters that algorithms once had, each with the one value that is what they do today."""


def algorithm_name(algo: Algorithm[Any]) -> str:
    """Return the name under which users know an algorithm."""
    name = next((name for name, kind in REGISTRY.items() if kind is type(algo)), None)
    if name is None:
        kind = type(algo).__name__
        raise BisacError(f"{kind} has no name: give it one, as bisac.register('my-name', {kind}) does.")
    return name


def make_algorithm(algo: str | Algorithm[Any], hyperparameters: dict[str, Any]) -> Algorithm[Any]:
    """Return the algorithm of that name with these hyperparameters, or the given one with them replaced."""
    if isinstance(algo, str) and algo not in REGISTRY:
        raise BisacError(f"there is no algorithm '{algo}'; there are {', '.join(REGISTRY)}.")
    kind = REGISTRY[algo] if isinstance(algo, str) else type(algo)
    known = [field.name for field in dataclasses.fields(kind)]
    for name in hyperparameters:
        if name not in known:
            hint = did_you_mean(name, known, f"; it has {', '.join(known)}")
            raise BisacError(f"{kind.__name__} has no hyperparameter '{name}'{hint}")
    return kind(**hyperparameters) if isinstance(algo, str) else dataclasses.replace(algo, **hyperparameters)


def module_of(algo: Algorithm[Any]) -> dict[str, str]:
    """Return what a file says of an algorithm that is not ours: where it is defined, which must be imported first."""
    module = type(algo).__module__
    return {} if module.startswith("bisac.") else {"algo_module": module}


def value_from_json(value: Any) -> Any:
    """Return a setting's value as dataclasses hold it: JSON's lists are their tuples."""
    return tuple(value) if isinstance(value, list) else value


def algorithm_from_json(name: str, hyperparameters: dict[str, Any], module: str | None = None) -> Algorithm[Any]:
    """Return the settled algorithm that a file of ours names: JSON's lists are the tuples that algorithms hold.

    What a file does not say of a hyperparameter that is younger than the file, the hyperparameter's field does. The
    file of an algorithm that is not ours names its `module`.
    """
    if name not in REGISTRY and module is not None:
        raise BisacError(
            f"there is no algorithm '{name}' here: it was registered by {module}; import that first, or for the "
            f"command line set BISAC_IMPORT={module}."
        )
    given = {key: value_from_json(value) for key, value in hyperparameters.items()}
    for key, only in RETIRED.items():
        if (value := given.pop(key, only)) != only:
            raise BisacError(f"--{key} {value} is no longer part of bisac; its version 0.3 was the last to have it")
    fields = dataclasses.fields(make_algorithm(name, {}))
    earlier = {field.name: field.metadata[EARLIER] for field in fields if EARLIER in field.metadata}
    return make_algorithm(name, earlier | given).settled()
