"""The loops, as generators: act, step the environments, learn. Between two steps a run is whole.

Off-policy, one compiled call does all but the stepping. On-policy, one draws an action, and one learns from a rollout.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from bisac.algos import Algorithm, OffPolicy, OnPolicy, Rollout
from bisac.collect import replay as replay_memory
from bisac.collect.scaling import Scaling
from bisac.envs.host.envs import Episode, HostEnvs
from bisac.runs.run import Flat, Run, Training, check_sound, fresh_training
from bisac.types import Metrics, Transition


def start(algo: Algorithm[Any], envs: HostEnvs, seed: int) -> Run:
    """A run about to take its first step."""
    training = fresh_training(algo, envs.spec, envs.count, jax.random.key(seed))
    run = Run(algo, envs, Flat.of(training), envs.reset(), np.zeros((envs.count, envs.spec.action_dim), np.float32))
    draw_next(run)
    return run


def draw_next(run: Run) -> None:
    """Draw the action for an observation that no step led to: at the start, or where an environment began anew."""
    if isinstance(run.algo, OffPolicy):
        random = run.step < run.algo.learning_starts
        run.training, action = draw_action(run.algo, run.training, run.obs, random)
        run.action = np.asarray(action)


def steps_of(run: Run, steps: int) -> Iterator[list[Episode]]:
    """Train until `steps` environment steps have been taken; yields at each pause the episodes that ended before it."""
    return (off_policy_steps if isinstance(run.algo, OffPolicy) else on_policy_steps)(run, steps)


def off_policy_steps(run: Run, steps: int) -> Iterator[list[Episode]]:
    """Learn from a replay memory; pauses after each step of all environments."""
    algo, width = run.algo, run.envs.count
    assert isinstance(algo, OffPolicy)
    run.stride = width
    while run.step < steps:
        _check_action(run)
        result = run.envs.step(run.action)
        discount = 1.0 - result.terminated.astype(np.float32)
        # The compiled call takes the host's arrays as they are: moving each by itself would cost more than the step.
        experience: tuple[Any, ...] = (run.obs, run.action, result.reward, discount, result.next_obs)
        run.step += width
        due = max(0, int((run.step - algo.learning_starts) * algo.utd) - run.updates)
        random = run.step < algo.learning_starts
        if due and not run.updates:
            run.training = begin_learning(run, Transition(*experience))
        leaves, structure = run.flat
        leaves, action = learn_and_act(
            algo, structure, leaves, Transition(*experience), result.ended, result.obs, due, random
        )
        run.flat = Flat(leaves, structure)
        run.updates += due
        run.obs, run.action = result.obs, np.asarray(action)
        yield result.finished


def begin_learning(run: Run, newest: Transition) -> Training:
    """The device's part, once the algorithm has seen the random steps that it starts from, the newest among them."""
    training, algo = run.training, run.algo
    assert isinstance(algo, OffPolicy)
    assert training.replay is not None
    held = int(training.replay.size)
    rows = zip(training.replay.storage, newest, strict=True)
    warm_up: list[Any] = [np.concatenate([old[:held], new]) for old, new in rows]
    state = jax.jit(algo.begin)(training.algo, Transition(*warm_up))
    return eqx.tree_at(lambda t: t.algo, training, state)


@partial(jax.jit, static_argnames=("algo", "structure"), donate_argnames="leaves")
def learn_and_act(
    algo: OffPolicy[Any],
    structure: Any,
    leaves: tuple[Array, ...],
    transition: Transition,
    ended: Bool[Array | np.ndarray, "env"],
    obs: Float[Array | np.ndarray, "env obs"],
    updates: int | Int[Array, ""],
    random: bool | Bool[Array, ""],
) -> tuple[tuple[Array, ...], Float[Array, "env act"]]:
    """Remember a transition of each environment, update so many times, and draw the next actions."""
    training: Training = jax.tree.unflatten(structure, leaves)
    assert training.replay is not None
    memory = replay_memory.add(training.replay, transition)
    obs_seen, reward, ends = (jnp.asarray(leaf)[None] for leaf in (transition.obs, transition.reward, ended))
    normaliser = training.normaliser.observe(obs_seen, reward, ends, algo.gamma)
    key, learn_key = jax.random.split(training.key)

    def update(index: Int[Array, ""], carry: tuple[PyTree[Array], Metrics, Int[Array, ""]]):
        state, sums, sound = carry
        sample_key, update_key = jax.random.split(jax.random.fold_in(learn_key, index))
        batch = normaliser.batch(replay_memory.sample(memory, sample_key, algo.batch_size))
        state, metrics = algo.update(state, batch, update_key)
        return state, *_tallied(sums, sound, metrics)

    carry = training.algo, training.metric_sums, training.sound_count
    state, sums, sound = jax.lax.fori_loop(0, updates, update, carry)
    learned = Training(state, normaliser, memory, key, sums, training.metric_count + updates, sound)
    learned, action = _draw_action(algo, learned, obs, random)
    return Flat.of(learned).leaves, action


@partial(jax.jit, static_argnames="algo", donate_argnames="training")
def draw_action(
    algo: OffPolicy[Any], training: Training, obs: Float[Array | np.ndarray, "env obs"], random: bool | Bool[Array, ""]
) -> tuple[Training, Float[Array, "env act"]]:
    """The actions alone."""
    return _draw_action(algo, training, obs, random)


def _draw_action(
    algo: OffPolicy[Any], training: Training, obs: Float[Array | np.ndarray, "env obs"], random: bool | Bool[Array, ""]
) -> tuple[Training, Float[Array, "env act"]]:
    """Explore: by the policy, or uniformly while `random`."""
    key, policy_key, uniform_key = jax.random.split(training.key, 3)
    by_policy = algo.act(training.algo, training.normaliser.obs(jnp.asarray(obs)), policy_key, explore=True)
    uniform = jax.random.uniform(uniform_key, by_policy.shape, minval=-1.0, maxval=1.0)
    drawn = jnp.where(random, uniform, by_policy)
    return eqx.tree_at(lambda t: t.key, training, key), drawn


def on_policy_steps(run: Run, steps: int) -> Iterator[list[Episode]]:
    """Learn from fresh rollouts; pauses after each."""
    algo, width = run.algo, run.envs.count
    assert isinstance(algo, OnPolicy)
    length = algo.length(width)
    run.stride = length * width
    while run.step < steps:
        rows: list[tuple[np.ndarray, ...]] = []
        finished: list[Episode] = []
        training = run.training
        for index in range(length):
            run.action = np.asarray(explore(algo, training.algo, training.normaliser, run.obs, training.key, index))
            _check_action(run)
            result = run.envs.step(np.clip(run.action, -1.0, 1.0))
            discount = 1.0 - result.terminated.astype(np.float32)
            rows.append((run.obs, run.action, result.reward, discount, result.next_obs, result.ended))
            run.obs = result.obs
            finished += result.finished
        remaining = np.float32(1.0 - min(1.0, run.step / steps))
        rollout: tuple[Any, ...] = tuple(np.stack(column) for column in zip(*rows, strict=True))
        run.training = learn_from_rollout(algo, training, Rollout(*rollout), remaining)
        run.step += run.stride
        run.updates += 1
        yield finished


@partial(jax.jit, static_argnames="algo")
def explore(
    algo: OnPolicy[Any],
    state: PyTree[Array],
    normaliser: Scaling,
    obs: Float[Array | np.ndarray, "env obs"],
    key: Key[Array, ""],
    index: int | Int[Array, ""],
) -> Float[Array, "env act"]:
    """Actions as drawn, for a step of the rollout that begins with this key."""
    return algo.explore(state, normaliser.obs(jnp.asarray(obs)), jax.random.fold_in(key, index))


@partial(jax.jit, static_argnames="algo", donate_argnames="training")
def learn_from_rollout(
    algo: OnPolicy[Any], training: Training, rollout: Rollout, remaining: float | Float[Array, ""]
) -> Training:
    """Update once, by observations normalised as they were when acted upon."""
    # The first indices of fold_in are the rollout's actions.
    key, update_key = (jax.random.fold_in(training.key, rollout.reward.shape[0] + i) for i in range(2))
    normaliser = training.normaliser.observe(rollout.obs, rollout.reward, rollout.ended, algo.gamma)
    seen = rollout._replace(
        obs=training.normaliser.obs(rollout.obs),
        next_obs=training.normaliser.obs(rollout.next_obs),
        reward=normaliser.reward(rollout.reward),
    )
    state, metrics = algo.update(training.algo, seen, update_key, jnp.asarray(remaining))
    sums, sound = _tallied(training.metric_sums, training.sound_count, metrics)
    return Training(state, normaliser, None, key, sums, training.metric_count + 1, sound)


def _check_action(run: Run) -> None:
    """Never hand an environment what is no number: it would be blamed for what came of it."""
    if not np.isfinite(run.action).all():
        check_sound(run)


def _tallied(sums: Metrics, sound: Int[Array, ""], metrics: Metrics) -> tuple[Metrics, Int[Array, ""]]:
    """With one more update's metrics; it is sound if all are finite until now."""
    sums = jax.tree.map(jnp.add, sums, metrics)
    return sums, sound + jnp.isfinite(jnp.stack(list(sums.values()))).all().astype(jnp.int32)
