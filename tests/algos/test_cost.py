"""What an update costs, in counts that do not depend on the machine's mood: a change that makes it dearer shows here.

Counts are XLA's, of the program before it is optimised, at the sizes that people use. Where a bound fails and the cost
is meant, set it anew and say why; times are measured by `make bench`.
"""

import jax
import pytest
from forms import VDN_A

from bisac.algos import SAC, BidirectionalSAC, ForwardSAC
from bisac.types import Spec, Transition

HOPPER, HUMANOID = (11, 3), (348, 17)


def lowered(algo, obs, act):
    """The update's program for a task of these sizes."""
    algo, spec, key = algo.settled(), Spec("Cost", obs, (-1.0,) * act, (1.0,) * act), jax.random.key(0)
    state = jax.eval_shape(lambda: algo.init(spec, key))
    batch = jax.eval_shape(lambda: Transition.like(spec, algo.batch_size))
    return jax.jit(algo.update, donate_argnums=0).lower(state, batch, key)


def mflop(algo, sizes):
    return lowered(algo, *sizes).cost_analysis()["flops"] / 1e6


# Megaflops, and times SAC's. Inside a loop XLA counts once: here of the projection's curves, one of 2 N.
@pytest.mark.parametrize(
    ("algo", "sizes", "most"),
    [
        pytest.param(SAC(critic_norm="none"), HOPPER, 572, id="sac-hopper"),
        pytest.param(SAC(critic_norm="none"), HUMANOID, 1184, id="sac-humanoid"),
        pytest.param(BidirectionalSAC(**VDN_A), HOPPER, 698, id="bisac-hopper"),
        pytest.param(BidirectionalSAC(**VDN_A), HUMANOID, 1988, id="bisac-humanoid"),
        pytest.param(ForwardSAC(), HUMANOID, 1315, id="forward-sac-humanoid"),
    ],
)
def test_an_update_takes_no_more_operations_than_it_did(algo, sizes, most):
    assert 0.9 * most < mflop(algo, sizes) <= most  # far below: then the bound has gone slack


# Of a condition XLA counts the dearer branch: the policy's step at every update, though only each third takes it.
@pytest.mark.parametrize(
    ("sizes", "most"), [pytest.param(HOPPER, 1.26, id="hopper"), pytest.param(HUMANOID, 1.21, id="humanoid")]
)
def test_a_normalised_update_takes_little_more_than_a_classic_one(sizes, most):
    """The gradient of the critics runs through the next states too, which share the moments of the batch."""
    assert 0.95 * most < mflop(SAC(), sizes) / mflop(SAC(critic_norm="none"), sizes) <= most


def test_operations_grow_linearly_with_action_dimensions():
    few, some, many = (mflop(BidirectionalSAC(**VDN_A), (20, dims)) for dims in (4, 16, 28))
    assert many - some == pytest.approx(some - few, rel=1e-3)


def test_memory_of_the_projection_stays_bounded():
    """38 dimensions and 1,024 states: curves of all networks at once would take 2 * 38 * 1024 * 17 * 64 floats."""
    workspace = (
        lowered(BidirectionalSAC(batch_size=1024, **VDN_A), 100, 38).compile().memory_analysis().temp_size_in_bytes
    )
    assert workspace < 180 * 2**20 < 2 * 38 * 1024 * 17 * 64 * 4
