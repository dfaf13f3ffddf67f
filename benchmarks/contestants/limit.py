"""The machine's limit as a contestant: the matrix products that a SAC update cannot do without, and nothing else.

python limit.py LIBRARY ENV

They have the shapes of SAC's layers, transposed where gradients are, and each needs the one before, as in an update.
The same lines run on XLA and on NumPy's BLAS, for which of them is the faster depends on the machine.
"""

import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from meter import UPDATES, Meter

BATCH, WIDTH = 256, 256
SIZES = {"Hopper-v5": (11, 3), "Humanoid-v5": (348, 17), "Pendulum-v1": (3, 1)}
"""Observations and actions."""
Matrix = Any
"""Of JAX or of NumPy."""


def forward(weights: list[Matrix], x: Matrix) -> list[Matrix]:
    """The input of each layer, and the output."""
    values = [x]
    for weight in weights:
        values.append(values[-1] @ weight)
    return values


def to_hidden(weights: list[Matrix], gradient: Matrix) -> list[Matrix]:
    """Gradients of each layer's output, the first layer's first."""
    gradients = [gradient]
    for weight in reversed(weights[1:]):
        gradients.insert(0, gradients[0] @ weight.T)
    return gradients


def to_weights(values: list[Matrix], gradients: list[Matrix]) -> list[Matrix]:
    """Gradients of the weights."""
    return [value.T @ gradient for value, gradient in zip(values, gradients, strict=False)]


def products(
    actor: list[Matrix], critics: list[list[Matrix]], obs: list[Matrix], pairs: list[Matrix], act: int
) -> list[Matrix]:
    """All products of an update: the targets, the critics' step, the actor's step."""
    results = [forward(actor, obs[0])[-1]]  # the next action
    results += [forward(critic, pairs[0])[-1] for critic in critics]  # its values
    for critic in critics:
        values = forward(critic, pairs[1])
        results += to_weights(values, to_hidden(critic, values[-1]))
    for critic in critics:
        gradients = to_hidden(critic, forward(critic, pairs[2])[-1])
        results.append(gradients[0] @ critic[0][-act:].T)  # to the action alone
    values = forward(actor, obs[1])
    return results + to_weights(values, to_hidden(actor, values[-1]))


def update_of(library: str, obs: int, act: int) -> Callable[[], object]:
    """What does them once."""
    random = np.random.default_rng(0)

    def matrix(rows: int, columns: int) -> Matrix:
        return (random.normal(size=(rows, columns)) / rows**0.5).astype(np.float32)

    def weights(*widths: int) -> list[Matrix]:
        return [matrix(*pair) for pair in itertools.pairwise(widths)]

    networks = weights(obs, WIDTH, WIDTH, 2 * act), [weights(obs + act, WIDTH, WIDTH, 1) for _ in range(2)]
    inputs = [matrix(BATCH, obs) for _ in range(2)], [matrix(BATCH, obs + act) for _ in range(3)]
    if library == "numpy":
        return lambda: products(*networks, *inputs, act)
    import jax

    arguments = jax.device_put((*networks, *inputs))
    compiled = jax.jit(products, static_argnums=4)
    return lambda: jax.block_until_ready(compiled(*arguments, act))


def main(library: str, env: str, _: str) -> None:
    """Multiply when told to."""
    update = update_of(library, *SIZES[env])

    def updates() -> int:
        for _ in range(UPDATES):
            update()
        return UPDATES

    Meter(1, 1, updates).tick()


if __name__ == "__main__":
    main(*sys.argv[1:])
