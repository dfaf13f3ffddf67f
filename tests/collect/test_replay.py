from collections import deque

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import prop
from scipy.stats import chisquare

from bisac.collect import replay

EXAMPLE = {"number": np.int32(0), "pair": np.zeros(2, np.float32)}


add = jax.jit(replay.add)
sample = jax.jit(replay.sample, static_argnums=2)


def items(first: int, count: int):
    """Items numbered from `first`, whose other leaf tells their number too."""
    number = np.arange(first, first + count, dtype=np.int32)
    return {"number": number, "pair": np.stack([number, -number], axis=-1).astype(np.float32)}


def numbers(held) -> list[int]:
    """The items' numbers, after a check that their leaves still belong together."""
    number = np.asarray(held["number"])
    np.testing.assert_array_equal(held["pair"], np.stack([number, -number], axis=-1))
    return number.tolist()


# Few sizes, for each is compiled anew.
@prop
@given(
    st.sampled_from([(5, 1), (8, 3)]),
    st.integers(0, 12),
    st.integers(0, 1000),
)
def test_holds_what_a_bounded_queue_would(sizes, blocks, seed):
    capacity, width = sizes
    memory = replay.init(capacity, EXAMPLE, width)
    assert capacity - width < memory.capacity <= capacity
    assert memory.capacity % width == 0
    model = deque(maxlen=memory.capacity)
    for block in range(blocks):
        new = items(1 + block * width, width)
        memory = add(memory, new)
        model.extend(numbers(new))
        assert int(memory.size) == len(model)
        assert sorted(numbers(memory.storage)[: int(memory.size)]) == list(model)
    if blocks:
        drawn = numbers(sample(memory, jax.random.key(seed), 32))
        assert len(drawn) == 32
        assert set(drawn) <= set(model)


@pytest.mark.parametrize("added", [13, 20, 33], ids=["partly filled", "full", "wrapped"])
def test_sampling_is_uniform_over_what_is_held(added):
    memory = replay.init(20, EXAMPLE)
    for number in range(1, added + 1):
        memory = add(memory, items(number, 1))
    drawn = numbers(sample(memory, jax.random.key(0), 20_000))
    held = range(max(1, added - 19), added + 1)
    counts = np.array([drawn.count(number) for number in held])
    assert counts.sum() == 20_000
    assert chisquare(counts).pvalue > 0.01


def test_bytes_needed_is_what_init_allocates():
    example = {"a": jnp.float32(0.0), "b": jnp.zeros((3, 5)), "c": jnp.zeros(7, jnp.uint8)}
    allocated = sum(leaf.nbytes for leaf in jax.tree.leaves(replay.init(11, example).storage))
    assert replay.bytes_needed(11, example) == allocated == 11 * (4 + 60 + 7)
