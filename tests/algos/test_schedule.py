"""Learning rates along a line: the same steps as optax's own schedule, in the same state as without one."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from probe_envs import Counter
from small_runs import SHORT, SMALL, dying_at, fingerprint

import bisac
from bisac.algos import MPO, SAC, TD3
from bisac.algos.schedule import Linear, adam, parse_schedule
from bisac.cli.train import parse_train
from bisac.types import Spec, Transition

TEXT = "linear:1e-2:1e-3:20"


@pytest.mark.parametrize("every", [1, 3])
def test_steps_are_those_of_optax(every):
    ours = adam(TEXT, b1=0.5, every=every)
    theirs = optax.adam(lambda count: 1e-2 - 9e-3 * jnp.minimum(count.astype(jnp.float32) * every / 20, 1.0), b1=0.5)
    weights = {"a": jnp.arange(3.0), "b": jnp.ones((2, 2))}
    mine, other = ours.init(weights), theirs.init(weights)
    assert jax.tree.structure(mine) == jax.tree.structure(optax.adam(1e-3).init(weights))
    with jax.numpy_dtype_promotion("standard"):
        for i in range(30):
            gradient = jax.tree.map(lambda leaf, i=i: jnp.sin(leaf + i), weights)
            (step, mine), (expected, other) = ours.update(gradient, mine), theirs.update(gradient, other)
            for one, two in zip(jax.tree.leaves(step), jax.tree.leaves(expected), strict=True):
                np.testing.assert_allclose(one, two, rtol=1e-5)


def test_schedules_are_read_and_refused():
    assert parse_schedule("linear:1e-3:0:200000") == Linear(1e-3, 0.0, 200_000)
    assert SAC(actor_lr=TEXT, temperature_lr=TEXT, critic_lr=TEXT).settled().actor_lr == TEXT
    assert MPO(dual_lr=TEXT).dual_lr == TD3(actor_lr=TEXT).actor_lr == TEXT
    bad_ones = "linear linear:1:2 linear:1:2:3:4 cosine:1:2:3 linear:a:2:3 linear:1:2:0 linear:0:1:5 linear:-1:1:5"
    more = "linear:1:-1:5 linear:nan:1:5 linear:1:2:1.5 fast"
    for bad in (*bad_ones.split(), *more.split(), "", -1.0, 0.0, 1e30):
        with pytest.raises(
            bisac.BisacError, match=r"--critic-lr must be positive and below 1e9, or linear:FROM:TO:UPDATES such"
        ):
            SAC(critic_lr=bad)
    with pytest.raises(bisac.BisacError, match="--critic-lr must be positive"):
        SAC(critic_lr="auto")
    command, _ = parse_train(["Hopper-v5", "--algo", "sac", "--actor-lr", TEXT, "--critic-lr", "1e-4"])
    assert (command.hyperparameters.actor_lr, command.hyperparameters.critic_lr) == (TEXT, 1e-4)


def test_extending_a_run_does_not_change_its_past(tmp_path):
    changes = (
        SMALL | SHORT | dict(actor_lr=TEXT, critic_lr=TEXT, temperature_lr=TEXT, policy_delay=2, critic_norm="none")
    )
    bisac.train(Counter, out=tmp_path / "long", **changes)
    bisac.train(Counter, out=tmp_path / "extended", **changes | dict(steps=40))
    with dying_at(70):
        bisac.resume(tmp_path / "extended", env=Counter, steps=100, verbose=False)
    bisac.resume(tmp_path / "extended", env=Counter, steps=100, verbose=False)
    assert fingerprint(tmp_path / "extended") == fingerprint(tmp_path / "long")


def test_a_schedule_counts_updates_where_the_actor_takes_every_third():
    algo = SAC(actor_lr="linear:1e-2:0:3", temperature_lr="linear:1e-2:0:3", hidden=(8,), batch_size=16).settled()
    spec = Spec("sizes", 3, (-1.0, -1.0), (1.0, 1.0))
    state, update = jax.jit(algo.init, static_argnums=0)(spec, jax.random.key(0)), jax.jit(algo.update)
    batch = Transition(*(jnp.ones((16, *size)) for size in ((3,), (2,), (), (), (3,))))
    seen = []
    for step in range(7):
        state, _ = update(state, batch, jax.random.key(step))
        seen.append([np.asarray(leaf) for leaf in jax.tree.leaves((state.actor.model, state.temperature.model))])
    assert algo.policy_delay == 3
    for later in seen[1:]:  # the second turn is at the fourth update, when the rate is 0
        for first, now in zip(seen[0], later, strict=True):
            np.testing.assert_array_equal(now, first)
