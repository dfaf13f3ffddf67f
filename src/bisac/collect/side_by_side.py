"""Runs of one algorithm side by side: spread over the devices that there are, each hearing nothing of the others.

On processors, each run is a program of its own, the very one that it is alone, so that it comes to the same bits; the
devices work at the same time. On accelerators, the runs of a device are one program, with a leading axis of runs: small
networks alone would leave it idle. Their counters are the same in all of them, for all take the same steps; these are
kept out of the batch, so that where the memory is written to stays one slice, and what an update skips at most steps
stays skipped.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from bisac.collect.learning import Learning


class Group(NamedTuple):
    """Runs that are stepped by one program."""

    device: Any
    """Where."""
    seeds: tuple[int, ...]
    """The seed of each."""


def grouped(seeds: tuple[int, ...], batched: bool | None = None) -> list[Group]:
    """Return the runs of these seeds as programs: one each on processors, one a device on accelerators.

    `batched` asks for one or the other.
    """
    devices = jax.devices()
    if batched is None:
        batched = devices[0].platform != "cpu"
    if not batched:
        return [Group(devices[index % len(devices)], (seed,)) for index, seed in enumerate(seeds)]
    count = max(number for number in range(1, len(devices) + 1) if len(seeds) % number == 0)
    size = len(seeds) // count
    return [Group(device, seeds[i * size : (i + 1) * size]) for i, device in enumerate(devices[:count])]


def joined(runs: Sequence[PyTree[Array]]) -> PyTree[Array]:
    """Return the trees of a group's runs as one, with a leading axis; one run stays as it is."""
    return runs[0] if len(runs) == 1 else jax.tree.map(lambda *leaves: jnp.stack(leaves), *runs)


def one_of(tree: PyTree[Array], run: int, runs: int) -> PyTree[Array]:
    """Return the tree of one of the runs that `joined` has joined."""
    return tree if runs == 1 else jax.tree.map(lambda leaf: leaf[run], tree)


def without_counters(learning: Learning) -> Learning:
    """Return the learning of several runs with one number for each counter, in the place of equal ones."""
    return jax.tree.map(lambda leaf, axis: leaf if axis == 0 else leaf[0], learning, _axes(learning, 1))


def with_counters(learning: Learning, runs: int) -> Learning:
    """Return what `without_counters` was given."""
    return jax.tree.map(
        lambda leaf, axis: leaf if axis == 0 else jnp.broadcast_to(leaf, (runs,)), learning, _axes(learning, 0)
    )


def for_each(function: Callable[..., Any], learning: Learning, *arguments: PyTree[Array]) -> Any:
    """Return `function` of each run's learning and its part of the arguments, all runs in one batch.

    It returns a learning, or a tuple of a learning and arrays. The learning has no counters of several runs.
    """
    axes = [None if axis < 0 else 0 for axis in jax.tree.leaves(_axes(learning, 0))]
    structure = jax.tree.structure(learning)

    def on_leaves(leaves: list[Array], *rest: Any) -> tuple[list[Array], Any]:
        result = function(jax.tree.unflatten(structure, leaves), *rest)
        learned, more = result if isinstance(result, tuple) else (result, None)
        return jax.tree.leaves(learned), more

    batched = jax.vmap(on_leaves, in_axes=(axes, *(0 for _ in arguments)), out_axes=(axes, 0))
    leaves, more = batched(jax.tree.leaves(learning), *arguments)
    learned = jax.tree.unflatten(structure, leaves)
    return learned if more is None else (learned, more)


def _axes(learning: Learning, own: int) -> Learning:
    """Return -1 for each counter and 0 for all else; `own` is how many axes a counter has."""
    axes = jax.tree.map(
        lambda leaf: -1 if leaf.ndim == own and jnp.issubdtype(leaf.dtype, jnp.integer) else 0, learning
    )
    return eqx.tree_at(lambda t: t.sound_count, axes, 0)  # a run may be sound while another is not
