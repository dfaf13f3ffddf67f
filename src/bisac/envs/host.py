"""Gymnasium environments stepped together on the host, each episode from a seed of its own.

We reset by ourselves instead of through a vector environment's autoreset: the transition that ends an episode keeps
its true last observation, and an episode is reproduced by its seed and its actions.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bisac.envs.spec import EnvSource, make_env, spec_of
from bisac.errors import BisacError

FloatArray = np.ndarray
"""float32."""


class EnvStep(NamedTuple):
    """What one step of all environments gave; arrays have one row an environment."""

    next_obs: FloatArray
    """Where the actions led, the last observation of an episode included."""
    obs: FloatArray
    """What to act on now: the first observation of a new episode where the last one ended."""
    reward: FloatArray
    terminated: np.ndarray
    ended: np.ndarray
    """Where the episode ended, by termination or truncation."""
    finished: list["Episode"]
    """Episodes that ended in this step."""


@dataclass
class Episode:
    """A running episode: its seed and actions reproduce it."""

    seed: int
    actions: list[FloatArray] = field(default_factory=list)
    total_reward: float = 0.0

    @property
    def length(self) -> int:
        """Steps taken."""
        return len(self.actions)


class HostEnvs:
    """`count` copies of an environment."""

    def __init__(self, source: EnvSource, count: int, seed: int):
        self.envs = [make_env(source) for _ in range(count)]
        self.spec = spec_of(source, self.envs[0])
        self.seed = seed
        self.steps = 0
        self.started = [0] * count
        self.episodes = [Episode(0)] * count

    def reset(self) -> FloatArray:
        """Start an episode in every environment."""
        return np.stack([self._reset_one(i) for i in range(len(self.envs))])

    def step(self, actions: FloatArray) -> EnvStep:
        """Act in every environment, with actions in [-1, 1]; environments whose episode ends start another."""
        self.steps += 1
        scaled = self.spec.to_box(actions)
        next_obs = np.empty((len(self.envs), self.spec.obs_dim), np.float32)
        reward = np.empty(len(self.envs), np.float32)
        terminated, ended = np.empty((2, len(self.envs)), bool)
        for i, env in enumerate(self.envs):
            box_action = scaled[i].reshape(env.action_space.shape or ())
            next_obs[i], reward[i], terminated[i], truncated, _ = env.step(box_action)
            episode = self.episodes[i]
            episode.actions.append(actions[i])
            episode.total_reward += float(reward[i])
            ended[i] = terminated[i] or truncated
        self._check_finite(next_obs, reward)
        over = [i for i, end in enumerate(ended) if end]
        finished = [self.episodes[i] for i in over]
        obs = next_obs.copy() if over else next_obs
        for i in over:
            obs[i] = self._reset_one(i)
        return EnvStep(next_obs, obs, reward, terminated, ended, finished)

    def restore(self, steps: int, started: list[int], episodes: list[Episode], obs: FloatArray) -> list[int]:
        """Bring every environment back into its episode by its seed and actions.

        Returns the environments where that did not lead to the observation `obs`, bit for bit: they do not repeat
        themselves when seeded, and begin a new episode, whose first observation takes its place in `obs`.
        """
        self.steps, self.started = steps, list(started)
        strayed = []
        for i, episode in enumerate(episodes):
            if not self._repeats(i, episode, obs[i]):
                strayed.append(i)
                obs[i] = self._reset_one(i)
            else:
                self.episodes[i] = episode
        return strayed

    def _repeats(self, index: int, episode: Episode, expected: FloatArray) -> bool:
        env = self.envs[index]
        obs, total_reward = np.asarray(env.reset(seed=episode.seed)[0], np.float32), 0.0
        for action in self.spec.to_box(np.reshape(episode.actions, (-1, self.spec.action_dim))):
            obs, reward, terminated, truncated, _ = env.step(action.reshape(env.action_space.shape or ()))
            total_reward += float(np.float32(reward))
            if terminated or truncated:
                return False
        return np.asarray(obs, np.float32).tobytes() == expected.tobytes() and total_reward == episode.total_reward

    def close(self) -> None:
        """Close every environment."""
        for env in self.envs:
            env.close()

    def _reset_one(self, index: int) -> FloatArray:
        seed = episode_seed(self.seed, index, self.started[index])
        self.started[index] += 1
        self.episodes[index] = Episode(seed)
        obs = np.asarray(self.envs[index].reset(seed=seed)[0], np.float32)
        if not np.isfinite(obs).all():
            raise BisacError(f"{self.spec.env_id} (copy {index}) gave an observation that is not finite at its reset.")
        return obs

    def _check_finite(self, next_obs: FloatArray, reward: FloatArray) -> None:
        for what, bad in (("observation", ~np.isfinite(next_obs).all(axis=1)), ("reward", ~np.isfinite(reward))):
            if bad.any():
                index = int(np.argmax(bad))
                raise BisacError(
                    f"{self.spec.env_id} (copy {index}) gave {'an' if what == 'observation' else 'a'} {what} that is "
                    f"not finite at environment step {self.steps}; the environment must be mended."
                )


def episode_seed(seed: int, index: int, episode: int) -> int:
    """The reset seed of the n-th episode of one of a run's environments."""
    return int(np.random.SeedSequence((seed, index, episode)).generate_state(1)[0])
