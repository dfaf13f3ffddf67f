"""Gymnasium environments stepped together on the host, each episode from a seed of its own.

We reset by ourselves instead of through a vector environment's autoreset: the transition that ends an episode keeps
its true last observation, and an episode is reproduced by its seed and its actions.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bisac.envs.host.asynchronous import AsyncBackend
from bisac.envs.host.backends import Backend, BackendName
from bisac.envs.host.envpool import EnvPoolBackend
from bisac.envs.host.synchronous import SyncBackend
from bisac.envs.task import Task
from bisac.errors import BisacError

BACKENDS: dict[BackendName, Callable[[Task, int], Backend]] = {
    "sync": SyncBackend,
    "async": AsyncBackend,
    "envpool": EnvPoolBackend,
}

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

    def __init__(self, task: Task, count: int, seed: int, backend: BackendName = "sync"):
        self.backend = BACKENDS[backend](task, count)
        self.spec = self.backend.spec
        self.seed = seed
        self.steps = 0
        self.started = [0] * count
        self.episodes = [Episode(0)] * count

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.episodes)

    def reset(self) -> FloatArray:
        """Start an episode in every environment."""
        return self._begin(list(range(self.count)))

    def step(self, actions: FloatArray) -> EnvStep:
        """Act in every environment, with actions in [-1, 1]; environments whose episode ends start another."""
        self.steps += 1
        next_obs, reward, terminated, truncated = self.backend.step(self.spec.to_box(actions))
        for i, episode in enumerate(self.episodes):
            episode.actions.append(actions[i])
            episode.total_reward += float(reward[i])
        self._check_finite(next_obs, reward)
        ended = terminated | truncated
        over = np.flatnonzero(ended).tolist()
        finished = [self.episodes[i] for i in over]
        obs = next_obs
        if over:
            obs = next_obs.copy()
            obs[over] = self._begin(over)
        return EnvStep(next_obs, obs, reward, terminated, ended, finished)

    def restore(self, steps: int, started: list[int], episodes: list[Episode], obs: FloatArray) -> list[int]:
        """Bring every environment back into its episode by its seed and actions.

        Returns the environments where that did not lead to the observation `obs`, bit for bit: they do not repeat
        themselves when seeded, and begin a new episode, whose first observation takes its place in `obs`.
        """
        self.steps, self.started, self.episodes = steps, list(started), list(episodes)
        actions = [self.spec.to_box(np.reshape(episode.actions, (-1, self.spec.action_dim))) for episode in episodes]
        replays = self.backend.replay([episode.seed for episode in episodes], actions)
        strayed = [
            i
            for i, (episode, replay) in enumerate(zip(episodes, replays, strict=True))
            if replay is None or (replay[0].tobytes(), replay[1]) != (obs[i].tobytes(), episode.total_reward)
        ]
        if strayed:
            obs[strayed] = self._begin(strayed)
        return strayed

    def close(self) -> None:
        """Close every environment."""
        self.backend.close()

    def _begin(self, indices: list[int]) -> FloatArray:
        """Start an episode in some of the environments."""
        seeds = [episode_seed(self.seed, i, self.started[i]) for i in indices]
        for i, seed in zip(indices, seeds, strict=True):
            self.started[i] += 1
            self.episodes[i] = Episode(seed)
        obs = self.backend.reset(indices, seeds)
        if obs.shape[1:] != (self.spec.obs_dim,):
            raise BisacError(
                f"{self.spec.env_id} gave an observation of shape {obs.shape[1:]}; its observation space has "
                f"{self.spec.obs_dim} numbers. The environment must be mended."
            )
        if len(bad := np.flatnonzero(~np.isfinite(obs).all(axis=1))):
            copy = indices[bad[0]]
            raise BisacError(f"{self.spec.env_id} (copy {copy}) gave an observation that is not finite at its reset.")
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
