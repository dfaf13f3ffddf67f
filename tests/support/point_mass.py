"""A point mass whose physics live on the device, and its collector: all that another place of environments needs."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bisac.collect.collector import Collector, Episode, Evaluation, Request, Snapshot, State
from bisac.collect.learning import Flat, fresh_learning, learning_shapes
from bisac.collect.off_policy import begin_learning, draw_action, learn, updates_due
from bisac.types import Spec, Transition

EPISODE, CHUNK = 20, 16


class Masses(NamedTuple):
    """Where some masses are, one entry each; with several runs, a leading axis of runs."""

    position: Array
    velocity: Array
    time: Array
    total_reward: Array
    key: Array

    @property
    def obs(self):
        return jnp.stack([self.position, self.velocity], axis=-1)


def placed(key, num_envs):
    """Masses at the start of an episode."""
    key, place_key = jax.random.split(key)
    position = jax.random.uniform(place_key, (num_envs,), minval=-1.0, maxval=1.0)
    velocity, total_reward = jnp.zeros(num_envs), jnp.zeros(num_envs)
    return Masses(position, velocity, jnp.zeros(num_envs, jnp.int32), total_reward, jax.random.key_data(key))


def moved(masses, action):
    """The masses after a push, and the reward of each."""
    velocity = 0.9 * masses.velocity + 0.1 * action[:, 0]
    position = jnp.clip(masses.position + 0.2 * velocity, -2.0, 2.0)
    reward = -jnp.square(position) - 0.01 * jnp.square(action[:, 0])
    after = masses._replace(position=position, velocity=velocity, time=masses.time + 1)
    return after._replace(total_reward=masses.total_reward + reward), reward


def begun_again(masses, ended):
    """The masses with a new episode where one has ended."""
    fresh = placed(jax.random.wrap_key_data(masses.key), len(ended))
    kept = [jnp.where(ended, new, old) for new, old in zip(fresh[:4], masses[:4], strict=True)]
    return Masses(*kept, fresh.key)


def step_of_all(algo, learning, masses, due, random):
    """Act, move, remember and learn: one step of all environments of a run."""
    learning, action = draw_action(algo, learning, masses.obs, random)
    after, reward = moved(masses, action)
    ended = after.time == EPISODE
    transition = Transition(masses.obs, action, reward, jnp.ones_like(reward), after.obs)
    return learn(algo, learning, transition, ended, due), begun_again(after, ended), after.total_reward, ended


@partial(jax.jit, static_argnames=("algo", "runs"), donate_argnames=("learning", "masses"))
def chunk(algo, runs, learning, masses, dues, randoms, count):
    """The first `count` of CHUNK steps of all environments, and the episodes that ended in each."""

    def whole(learning, masses):
        def body(index, carry):
            learning, masses, totals, ends = carry
            learning, masses, total, ended = step_of_all(algo, learning, masses, dues[index], randoms[index])
            return learning, masses, totals.at[index].set(total), ends.at[index].set(ended)

        shape = (CHUNK, *masses.position.shape)
        return jax.lax.fori_loop(0, count, body, (learning, masses, jnp.zeros(shape), jnp.zeros(shape, bool)))

    return whole(learning, masses) if runs == 1 else jax.vmap(whole)(learning, masses)


class PointMassCollector(Collector):
    """Steps point masses inside the compiled program, for one run or for several side by side."""

    def __init__(self, request: Request):
        self.request = request
        self.spec = Spec("PointMass", 2, (-1.0,), (1.0,))

    def start(self):
        started = [self._fresh(jax.random.key(seed)) for seed in self.request.seeds]
        return self._joined(started, 0, 0)

    def advance(self, state, until):
        algo, num_envs, runs = self.request.algo, self.request.num_envs, len(self.request.seeds)
        dues, randoms, step, updates = [], [], state.step, state.updates
        while step < until and len(dues) < CHUNK:
            due = updates_due(algo, step + num_envs, updates)
            if due and not state.updates and dues:  # the algorithm sees the warm-up before it learns
                break
            randoms.append(step < algo.learning_starts)
            dues.append(due)
            step, updates = step + num_envs, updates + due
        learning = state.flat.whole
        if dues[0] and not state.updates:
            each = [begin_learning(algo, self.learning(state, run)) for run in range(runs)]
            learning = each[0] if runs == 1 else jax.tree.map(lambda *leaves: jnp.stack(leaves), *each)
        count = len(dues)
        padded = jnp.zeros(CHUNK, jnp.int32).at[:count].set(jnp.array(dues)), np.resize(randoms, CHUNK)
        learning, masses, totals, ends = chunk(algo, runs, learning, state.place, *padded, count)
        totals, ends = (np.asarray(leaf).reshape(runs, CHUNK, num_envs)[:, :count] for leaf in (totals, ends))
        episodes = [[Episode(float(r), EPISODE) for r in totals[run][ends[run]]] for run in range(runs)]
        return State(Flat.of(learning), masses, step, updates), episodes

    def evaluate(self, policy, run):
        masses = placed(jax.random.key(self.request.seeds[run] + 1000), self.request.eval_episodes)
        for _ in range(EPISODE):
            action, _ = policy.predict(np.asarray(masses.obs))
            masses, _ = moved(masses, jnp.asarray(action))
        returns = np.asarray(masses.total_reward)
        return Evaluation(returns, np.full(len(returns), EPISODE))

    def snapshot(self, state, run):
        masses = state.place if len(self.request.seeds) == 1 else jax.tree.map(lambda leaf: leaf[run], state.place)
        return Snapshot(self.learning(state, run), masses, {}, state.step, state.updates)

    def shapes(self, facts):
        learning = learning_shapes(self.request.algo, self.spec, self.request.num_envs)
        return learning, jax.eval_shape(lambda: self._fresh(jax.random.key(0))[1])

    def restore(self, snapshots):
        saved = [(snapshot.learning, snapshot.place) for snapshot in snapshots]
        return self._joined(saved, snapshots[0].step, snapshots[0].updates), [0] * len(snapshots)

    def close(self):
        pass

    def _fresh(self, key):
        run_key, place_key = jax.random.split(key)
        learning = fresh_learning(self.request.algo, self.spec, self.request.num_envs, run_key)
        return learning, placed(place_key, self.request.num_envs)

    def _joined(self, runs, step, updates):
        learning, masses = runs[0] if len(runs) == 1 else jax.tree.map(lambda *leaves: jnp.stack(leaves), *runs)
        return State(Flat.of(learning), masses, step, updates)


class PointMass:
    """The task: what `bisac.train` is given."""

    def collector(self, request):
        return PointMassCollector(request)
