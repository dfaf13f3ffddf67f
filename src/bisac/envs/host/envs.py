"""Gymnasium environments stepped together on the host, each episode from a seed of its own.

We reset by ourselves instead of through a vector environment's autoreset: the transition that ends an episode keeps
its true last observation, and an episode is reproduced by its seed and its actions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import VectorEnv

from bisac.envs.host.asynchronous import AsyncBackend
from bisac.envs.host.backends import Backend, BackendName
from bisac.envs.host.envpool import EnvPoolBackend
from bisac.envs.host.synchronous import SyncBackend
from bisac.envs.host.vector import VectorBackend
from bisac.envs.task import Task
from bisac.errors import BisacError

BACKENDS: dict[BackendName, Callable[[Task, int], Backend]] = {
    "sync": SyncBackend,
    "async": AsyncBackend,
    "envpool": EnvPoolBackend,
}

FloatArray = np.ndarray
"""A NumPy array of float32."""


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
    finished: list["RunningEpisode"]
    """The episodes that ended in this step."""


@dataclass
class RunningEpisode:
    """An episode under way: its seed and actions reproduce it."""

    seed: int
    actions: list[FloatArray] = field(default_factory=list)
    total_reward: float = 0.0
    info: Mapping[str, Any] = field(default_factory=dict)
    """What the environment told with the step that ended it."""

    @property
    def length(self) -> int:
        """Steps taken so far."""
        return len(self.actions)


class Mark(NamedTuple):
    """Where all environments stood at some moment: enough to forget what was noted since."""

    steps: int
    started: list[int]
    episodes: list[tuple[RunningEpisode, int, float]]
    """Each running episode with its length and return at that moment."""


class HostEnvs:
    """`num_envs` copies of an environment, and the seeds and actions that reproduce where each of them is."""

    def __init__(self, task: Task, num_envs: int, seed: int, backend: BackendName = "sync"):
        kind = VectorBackend if isinstance(task.source, VectorEnv) else BACKENDS[backend]
        self.backend = kind(task, num_envs)
        self.spec = self.backend.spec
        self.num_envs = num_envs
        self.seed = seed
        self.steps = 0
        self.started = [0] * num_envs
        self.episodes = [RunningEpisode(0)] * num_envs

    def reset(self) -> FloatArray:
        """Start an episode in every environment, and return the first observations."""
        return self._begin(list(range(self.num_envs)))

    def step(self, actions: FloatArray) -> EnvStep:
        """Act in every environment, with actions in [-1, 1]; environments whose episode ends start another."""
        next_obs, reward, terminated, truncated, infos = self.backend.step(self.spec.to_box(actions))
        self._check_finite(next_obs, reward)
        ended = terminated | truncated
        over = np.flatnonzero(ended).tolist()
        obs, seeds = next_obs, self._next_seeds(over)
        if over:
            obs = next_obs.copy()
            obs[over] = self._first_obs(over, seeds)
        # Noted only now: a step in which an environment failed has not been taken, and what is saved then is whole.
        self.steps += 1
        for i, episode in enumerate(self.episodes):
            episode.actions.append(actions[i])
            episode.total_reward += float(reward[i])
        finished = [self.episodes[i] for i in over]
        if infos is not None:
            for i in over:
                self.episodes[i].info = infos[i]
        self._note_begun(over, seeds)
        return EnvStep(next_obs, obs, reward, terminated, ended, finished)

    def mark(self) -> Mark:
        """Return where all environments stand."""
        return Mark(self.steps, list(self.started), [(e, e.length, e.total_reward) for e in self.episodes])

    def rewind(self, mark: Mark) -> None:
        """Forget what was noted since the mark; the environments themselves stay where they are."""
        self.steps, self.started = mark.steps, list(mark.started)
        self.episodes = [episode for episode, _, _ in mark.episodes]
        for episode, length, total_reward in mark.episodes:
            del episode.actions[length:]
            episode.total_reward = total_reward

    def restore(
        self, steps: int, started: list[int], episodes: list[RunningEpisode], obs: FloatArray, repeat: bool = True
    ) -> list[int]:
        """Bring every environment back into its episode by its seed and actions, unless told not to `repeat` them.

        Returns the environments where that did not lead to the observation `obs`, bit for bit: they do not repeat
        themselves when seeded, and begin a new episode, whose first observation takes its place in `obs`.
        """
        self.steps, self.started, self.episodes = steps, list(started), list(episodes)
        if not repeat:
            before = obs.copy()
            obs[:] = self.rejoin()
            begun = [episode.length > 0 for episode in episodes]
            return [i for i in range(self.num_envs) if begun[i] or before[i].tobytes() != obs[i].tobytes()]
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

    def rejoin(self) -> FloatArray:
        """Begin anew after somebody else used the environments, and return the first observations.

        Where no step was taken yet it is the same episode again, else the next one.
        """
        unbegun = [i for i, episode in enumerate(self.episodes) if not episode.length]
        others = [i for i in range(self.num_envs) if i not in unbegun]
        obs = np.empty((self.num_envs, self.spec.obs_dim), np.float32)
        if unbegun:
            obs[unbegun] = self._first_obs(unbegun, [self.episodes[i].seed for i in unbegun])
        if others:
            obs[others] = self._begin(others)
        return obs

    def close(self) -> None:
        """Close every environment."""
        self.backend.close()

    def _begin(self, indices: list[int]) -> FloatArray:
        """Start an episode in some of the environments, and return the first observations."""
        seeds = self._next_seeds(indices)
        obs = self._first_obs(indices, seeds)
        self._note_begun(indices, seeds)
        return obs

    def _next_seeds(self, indices: list[int]) -> list[int]:
        return [episode_seed(self.seed, i, self.started[i]) for i in indices]

    def _note_begun(self, indices: list[int], seeds: list[int]) -> None:
        for i, seed in zip(indices, seeds, strict=True):
            self.started[i] += 1
            self.episodes[i] = RunningEpisode(seed)

    def _first_obs(self, indices: list[int], seeds: list[int]) -> FloatArray:
        """Reset some of the environments, and refuse first observations that cannot be learned from."""
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
                    f"not finite at environment step {self.steps + 1}; the environment must be mended."
                )


def episode_seed(seed: int, index: int, episode: int) -> int:
    """Return the reset seed of the n-th episode of one of a run's environments."""
    return int(np.random.SeedSequence((seed, index, episode)).generate_state(1)[0])
