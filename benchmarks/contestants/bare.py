"""Updates of ours with nothing around them but the drawing of the batch."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key, PyTree

from bisac.algos import OffPolicy
from bisac.collect.replay import add, init, sample
from bisac.types import Metrics, Spec, Transition

ROWS = 4096


def sizes(obs: int, act: int) -> Spec:
    """A task of which only the sizes matter."""
    return Spec("benchmark", obs, (-1.0,) * act, (1.0,) * act)


def compiled_updates(algo: OffPolicy[Any], spec: Spec, count: int) -> tuple[Callable[[], None], Any]:
    """What runs so many updates in one call, and the compiled program."""
    algo, key = algo.settled(), jax.random.key(0)
    rows = Transition.like(spec, ROWS)
    noise = Transition(*(jnp.tanh(jax.random.normal(key, leaf.shape)) for leaf in rows))
    memory = add(init(ROWS, Transition.like(spec), ROWS), noise)

    def updates(state: PyTree[Array], keys: Key[Array, "count"]) -> tuple[PyTree[Array], Metrics]:
        def one(state: PyTree[Array], key: Key[Array, ""]) -> tuple[PyTree[Array], Metrics]:
            sample_key, update_key = jax.random.split(key)
            return algo.update(state, sample(memory, sample_key, algo.batch_size), update_key)

        return jax.lax.scan(one, state, keys)

    state, keys = jax.jit(algo.init, static_argnums=0)(spec, key), jax.random.split(key, count)
    program = jax.jit(updates, donate_argnums=0).lower(state, keys).compile()
    held = [state]

    def run() -> None:
        held[0], metrics = program(held[0], keys)
        jax.block_until_ready(metrics)

    return run, program
