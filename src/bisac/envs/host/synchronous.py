"""Environments stepped one after the other in this process: best for fast ones, and what evaluation is like."""

import numpy as np

from bisac.envs.host import worker
from bisac.envs.host.backends import Replay, Steps, stack_observations, stack_steps
from bisac.envs.task import Task


class SyncBackend:
    """Environments that are stepped one after the other, in this process."""

    def __init__(self, task: Task, num_envs: int):
        self.envs = [task.make() for _ in range(num_envs)]
        self.spec = task.spec(self.envs[0])

    def reset(self, indices: list[int], seeds: list[int]) -> np.ndarray:
        """Begin an episode in these environments, and return their first observations."""
        begun = [worker.reset(self.envs[i], seed) for i, seed in zip(indices, seeds, strict=True)]
        return stack_observations(begun, self.spec)

    def step(self, actions: np.ndarray) -> Steps:
        """Act in all environments."""
        taken = [worker.step(env, action) for env, action in zip(self.envs, actions, strict=True)]
        return stack_steps(taken, self.spec)

    def replay(self, seeds: list[int], actions: list[np.ndarray]) -> list[Replay]:
        """Bring each environment back into the episode of its seed and actions."""
        return [worker.replay(*episode) for episode in zip(self.envs, seeds, actions, strict=True)]

    def close(self) -> None:
        """Close the environments."""
        for env in self.envs:
            env.close()
