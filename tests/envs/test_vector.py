"""Vector environments that users have: the same trajectories as ours where they can be seeded, and exact resumes."""

from contextlib import closing

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from probe_envs import Counter, LinearQuadratic
from small_runs import SHORT, SMALL, dying_at, fingerprint

import bisac
from bisac.envs.host.envs import HostEnvs
from bisac.envs.task import Task

QUIET = SMALL | SHORT | dict(critic_norm="none", num_envs=None, eval_env=Counter)


class Nested(Counter):
    """Observes a dictionary; tells of success at its end."""

    observation_space = gym.spaces.Dict(
        place=gym.spaces.Box(-10.0, 10.0, (1, 1)), clock=gym.spaces.Tuple([gym.spaces.Discrete(9)])
    )

    def obs(self):
        return {"place": np.full((1, 1), self.state, np.float32), "clock": (self.time,)}

    def step(self, action):
        *rest, truncated, _ = super().step(action)
        ended = rest[-1] or truncated
        return *rest, truncated, {"is_success": self.length == 3, "extra": {"deep": 1}} if ended else {}


def vector(kind, env, count, mode):
    return kind([env] * count, autoreset_mode=mode)


@pytest.mark.parametrize(
    ("kind", "mode", "env"),
    [
        (SyncVectorEnv, AutoresetMode.NEXT_STEP, Counter),
        (SyncVectorEnv, AutoresetMode.DISABLED, Nested),
        (SyncVectorEnv, AutoresetMode.SAME_STEP, Nested),
    ],
)
def test_trajectories_are_those_of_our_own(kind, mode, env):
    actions = np.random.default_rng(0).uniform(-1, 1, (25, 3, 2)).astype(np.float32)
    theirs = vector(kind, env, 3, mode)
    with closing(HostEnvs(Task(env), 3, 5)) as plain, closing(theirs):
        envs = HostEnvs(Task(theirs), 3, 5)
        assert envs.spec.layout == plain.spec.layout
        assert envs.spec.obs_dim == plain.spec.obs_dim
        np.testing.assert_array_equal(envs.reset(), plain.reset())
        ended = 0
        for action in actions:
            ours, given = plain.step(action), envs.step(action)
            if mode == AutoresetMode.SAME_STEP:  # it seeds itself: only the first episodes are the same
                for i in np.flatnonzero(given.ended):
                    assert given.next_obs[i, 0] >= 3 > given.obs[i, 0], "not the last observation"
            else:
                for mine, other in zip(ours[:5], given[:5], strict=True):
                    np.testing.assert_array_equal(mine, other)
            for episode in given.finished:
                ended += 1
                if env is Nested:
                    assert episode.info["is_success"] == (episode.length == 3)
                    assert episode.info["extra"]["deep"] == 1
        assert ended > 5


def test_a_run_resumes_exactly(tmp_path):
    envs = [vector(SyncVectorEnv, Counter, 2, AutoresetMode.NEXT_STEP) for _ in range(2)]
    bisac.train(Counter, out=tmp_path / "plain", **QUIET | dict(num_envs=2))
    with dying_at(52):
        bisac.train(envs[0], out=tmp_path / "run", **QUIET)
    bisac.resume(tmp_path / "run", env=envs[1], eval_env=Counter, verbose=False)
    run, plain = (fingerprint(tmp_path / name) for name in ("run", "plain"))
    for part in ("progress.csv", "replay", "state.safetensors"):  # the others have the environment's name in them
        assert run[part] == plain[part]


def test_episodes_of_different_lengths_are_repeated():
    with closing(HostEnvs(Task(LinearQuadratic), 3, 1)) as envs:
        envs.reset()
        actions = np.random.default_rng(0).uniform(-1, 1, (7, 3, 2)).astype(np.float32)
        for action in actions:
            last = envs.step(action)
        envs.episodes[1].actions = envs.episodes[1].actions[:2]
        seeds, taken = [e.seed for e in envs.episodes], [np.array(e.actions) for e in envs.episodes]
        taken[2] = taken[2][:0].reshape(0, 2)
        expected = envs.backend.replay(seeds, taken)
    theirs = HostEnvs(Task(vector(SyncVectorEnv, LinearQuadratic, 3, AutoresetMode.DISABLED)), 3, 1)
    for mine, other in zip(expected, theirs.backend.replay(seeds, taken), strict=True):
        np.testing.assert_array_equal(mine[0], other[0])
        assert mine[1] == other[1]
    np.testing.assert_array_equal(expected[0][0], last.obs[0])


class Hides(gym.vector.VectorEnv):
    """Begins anew in the next step, and can not be told otherwise."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012
    num_envs = 2
    single_observation_space, single_action_space = Counter.observation_space, Counter.action_space


def test_bad_input_is_refused_in_a_sentence(tmp_path):
    good = vector(SyncVectorEnv, Counter, 2, AutoresetMode.DISABLED)
    for changes, sentence in (
        (dict(env=Hides()), "'Hides' begins episodes anew .* DISABLED or SAME_STEP"),
        (dict(env=good, num_envs=3), "is 2 environments, so num_envs must be 2, not 3"),
        (dict(env=good, eval_env=None), "give eval_env= an id"),
        (dict(env=Counter, eval_env=good), "a vector environment is only trained in"),
        (dict(env=gym.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync")), "needs continuous actions"),
    ):
        with pytest.raises(bisac.BisacError, match=sentence):
            bisac.train(out=tmp_path / "run", **QUIET | changes)
        assert not (tmp_path / "run").exists()
