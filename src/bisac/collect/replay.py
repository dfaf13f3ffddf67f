"""Replay memory: a ring of transitions in arrays allocated once, with pure init, add and sample."""

from functools import partial
from typing import Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Key, PyTree

Item = TypeVar("Item")


class Replay(eqx.Module, Generic[Item]):
    """The last `capacity` items added, each leaf stacked along its leading axis."""

    storage: Item
    position: Int[Array, ""]
    """Where the next item goes."""
    size: Int[Array, ""]
    """How many items are held."""

    @property
    def capacity(self) -> int:
        """The most items it holds."""
        return jax.tree.leaves(self.storage)[0].shape[0]


def init(capacity: int, example: Item, block: int = 1) -> Replay[Item]:
    """Return an empty memory for items like `example`, filled a `block` of them at a time.

    Its capacity is rounded down to a multiple of `block`, so that what is added never wraps in the middle.
    """
    rows = capacity // block * block
    storage = jax.tree.map(lambda leaf: jnp.zeros((rows, *jnp.shape(leaf)), jnp.result_type(leaf)), example)
    # Two arrays, not one twice: the state that holds them is donated to the compiled step.
    return Replay(storage, jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))


def add(replay: Replay[Item], items: Item) -> Replay[Item]:
    """Return the memory with a block of items written over the oldest."""
    block = jax.tree.leaves(items)[0].shape[0]
    storage = jax.tree.map(
        lambda rows, new: jax.lax.dynamic_update_slice_in_dim(rows, new, replay.position, axis=0),
        replay.storage,
        items,
    )
    return Replay(
        storage,
        (replay.position + block) % replay.capacity,
        jnp.minimum(replay.size + block, replay.capacity),
    )


def filled(replay: Replay[Item], items: Item) -> Replay[Item]:
    """Return an empty memory with items in it, of which it must be able to hold all."""
    count = jax.tree.leaves(items)[0].shape[0]
    storage = jax.tree.map(lambda rows, new: rows.at[:count].set(new), replay.storage, items)
    return Replay(storage, jnp.int32(count % replay.capacity), jnp.int32(count))


def full_of(items: Item) -> Replay[Item]:
    """Return a memory that holds these items, and has room for no others."""
    count = jax.tree.leaves(items)[0].shape[0]
    return filled(init(count, jax.tree.map(lambda rows: rows[0], items)), items)


def sample(replay: Replay[Item], key: Key[Array, ""], count: int) -> Item:
    """Return `count` items drawn uniformly with replacement from those held."""
    index = jax.random.randint(key, (count,), 0, replay.size)
    return jax.tree.map(lambda rows: rows[index], replay.storage)


def sample_runs(
    replay: Replay[Item], key: Key[Array, ""], count: int, length: int, block: int
) -> tuple[Item, Bool[Array, "length count"]]:
    """Return `count` items, drawn as `sample` draws them, each with those added after it, as `runs_from` has them."""
    return runs_from(replay, jax.random.randint(key, (count,), 0, replay.size), length, block)


def runs_from(
    replay: Replay[Item], index: Int[Array, "count"], length: int, block: int
) -> tuple[Item, Bool[Array, "length count"]]:
    """Return the items at these rows, each with those added up to `length` - 1 blocks later.

    These follow along a leading axis, from the item itself on: items of one place in blocks of `block`. Where fewer
    have been added since, what stands there is of no meaning, and False in the second answer.
    """
    ahead = block * jnp.arange(length)[:, None]
    newer = (replay.position - 1 - index) % replay.capacity  # items that were added after this one
    rows = (index[None] + ahead) % replay.capacity
    return jax.tree.map(lambda held: held[rows], replay.storage), ahead <= newer[None]


@partial(jax.jit, static_argnames="count")
def read_rows(replay: Replay[Item], start: int | Int[Array, ""], count: int) -> Item:
    """Return `count` rows from `start` on, around the ring."""
    index = (start + jnp.arange(count)) % replay.capacity
    return jax.tree.map(lambda rows: rows[index], replay.storage)


@partial(jax.jit, donate_argnames="storage")
def write_rows(storage: Item, start: int | Int[Array, ""], rows: Item, count: int | Int[Array, ""]) -> Item:
    """Return the storage with the first `count` of `rows` written from `start` on, around the ring."""
    capacity, offered = (jax.tree.leaves(tree)[0].shape[0] for tree in (storage, rows))
    row = jnp.arange(offered)
    index = jnp.where(row < count, (start + row) % capacity, capacity)  # past the end: dropped
    return jax.tree.map(lambda held, new: held.at[index].set(new, mode="drop"), storage, rows)


def bytes_needed(capacity: int, example: PyTree[Array]) -> int:
    """Return how many bytes `init` allocates."""
    return capacity * sum(jnp.size(leaf) * jnp.result_type(leaf).itemsize for leaf in jax.tree.leaves(example))
