"""Evaluation in Gymnasium environments: whole episodes with the deterministic policy, all of them in step."""

import numpy as np

from bisac.collect.collector import Acts, Evaluation, success_of
from bisac.envs.host.envs import episode_seed
from bisac.envs.host.worker import reset
from bisac.envs.task import Env, Task
from bisac.errors import BisacError
from bisac.policies.policy import Policy
from bisac.types import Spec

EVALUATION_STREAM, HELD_OUT_STREAM = 2**31, 2**31 + 1
"""Take the place of an environment's index in `episode_seed`: evaluation never repeats a training episode, and
`bisac eval` none of those by which training chose its best policy."""

MOST_STEPS = 100_000
"""Steps of an evaluation's episode after which it is given up: it would be waited for in vain."""

MOST_EPISODES = 1_000_000
"""Episodes of an evaluation: more are a typing error, and would fill the memory with their seeds."""

MOST_COPIES = 100
"""Environments of an evaluation: each takes memory, and a while to be made."""


class Uniform:
    """The random policy: actions drawn evenly from all that are allowed."""

    def __init__(self, spec: Spec):
        self._spec, self._random = spec, np.random.default_rng(0)

    def predict(self, observation: np.ndarray, /) -> tuple[np.ndarray, None]:
        """Draw an action for each observation."""
        size = (len(observation), self._spec.action_dim)
        return self._spec.to_box(self._random.uniform(-1.0, 1.0, size).astype(np.float32)), None


class Exploring:
    """A policy whose actions are drawn, as those of training are."""

    def __init__(self, policy: Policy):
        self._policy = policy

    def predict(self, observation: np.ndarray, /) -> tuple[np.ndarray, None]:
        """Draw an action for each observation."""
        return self._policy.predict(observation, deterministic=False)


class Evaluator:
    """The environments of an evaluation, made once."""

    def __init__(self, task: Task, episodes: int, seed: int, stream: int = EVALUATION_STREAM):
        copies = 1 if task.is_single else min(episodes, MOST_COPIES)
        self.envs: list[Env] = [task.make() for _ in range(copies)]
        self.spec = task.spec(self.envs[0])
        if len({id(env.unwrapped) for env in self.envs}) < copies:
            raise BisacError(
                f"the function that makes {self.spec.env_id} gave the same environment twice; each call must make a "
                f"new one."
            )
        self.seeds = [episode_seed(seed, stream, i) for i in range(episodes)]

    def __call__(self, policy: Acts) -> Evaluation:
        """Play the episodes, from the same seeds at each call, so that calls can be compared.

        There is an environment for each, or as many as there may be at once, which take turns.
        """
        rounds = [
            self._play(policy, self.seeds[i : i + len(self.envs)]) for i in range(0, len(self.seeds), len(self.envs))
        ]
        told = [success for _, _, successes in rounds for success in successes]
        returns, lengths = np.concatenate([r for r, _, _ in rounds]), np.concatenate([n for _, n, _ in rounds])
        if not np.isfinite(returns).all():
            raise BisacError(
                f"{self.spec.env_id} gave a reward that is not finite in an evaluation; it must be mended."
            )
        tells = any(success is not None for success in told)
        return Evaluation(returns, lengths, np.array([bool(success) for success in told]) if tells else None)

    def _play(self, policy: Acts, seeds: list[int]) -> tuple[np.ndarray, np.ndarray, list[bool | None]]:
        """Play an episode in each environment; return their returns, their lengths, and whether each succeeded."""
        obs = np.stack([reset(env, seed) for env, seed in zip(self.envs, seeds, strict=False)])
        returns, lengths = np.zeros(len(seeds)), np.zeros(len(seeds), int)
        running = np.ones(len(seeds), bool)
        successes: list[bool | None] = [None] * len(seeds)
        while running.any():
            actions, _ = policy.predict(obs)
            for i in np.flatnonzero(running):
                action = actions[i].reshape(self.envs[i].action_space.shape or ())
                obs[i], reward, terminated, truncated, info = self.envs[i].step(action)
                returns[i] += np.asarray(reward).item()
                lengths[i] += 1
                running[i] = not (terminated or truncated)
                if not running[i]:
                    successes[i] = success_of(info)
            if (lengths[running] >= MOST_STEPS).any():
                raise BisacError(
                    f"an episode of {self.spec.env_id} took {MOST_STEPS:,} steps in an evaluation and had not ended; "
                    f"limit it, as --env-arg max_episode_steps=1000 does."
                )
        return returns, lengths, successes

    def close(self) -> None:
        """Close the environments."""
        for env in self.envs:
            env.close()
