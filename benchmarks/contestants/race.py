"""A race to a return: what every contestant is judged by, whichever library it comes from.

It trains as its users have it train, and is stopped every few thousand steps for five deterministic episodes. They do
not count; compiling does. The return is reached when two evaluations in a row are at or above it. Seconds are those
that its core was busy with it: what it takes on a core of its own, whatever else the machine does.
"""

import json
import os
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from meter import versions

EVERY = 2_500
"""Environment steps between evaluations."""
EPISODES = 5
SEEDS = range(10_000, 10_000 + EPISODES)
"""Of the evaluation's episodes, the same for all contestants and at each evaluation."""

Predict = Callable[[np.ndarray], np.ndarray]
"""The deterministic actions, in the environment's own units, for a batch of observations."""


class Race:
    """The clock, and the judge."""

    def __init__(self, env: str, goal: float, limit: float):
        self._out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # what libraries print is no answer
        self._goal, self._limit = goal, limit
        self._envs = [gym.make(env) for _ in SEEDS]
        self._next, self._in_a_row = EVERY, 0
        self._say(versions=versions())
        self._paused, self._wall_paused = 0.0, 0.0
        self._began, self._wall_began = time.process_time(), time.perf_counter()

    def over(self, step: int, predict: Predict) -> bool:
        """Whether the contestant, which has taken so many steps, is to stop; evaluates it where that is due."""
        if step < self._next:
            return self.seconds > self._limit
        self._next += EVERY
        seconds, wall_seconds = self.seconds, self.wall_seconds
        stopped, wall_stopped = time.process_time(), time.perf_counter()
        returns = self._evaluate(predict)
        self._paused += time.process_time() - stopped
        self._wall_paused += time.perf_counter() - wall_stopped
        mean = float(np.mean(returns))
        self._in_a_row = self._in_a_row + 1 if mean >= self._goal else 0
        self._say(step=step, seconds=seconds, wall_seconds=wall_seconds, eval_return=mean)
        return self._in_a_row == 2 or seconds > self._limit

    @property
    def seconds(self) -> float:
        """Time that training has kept its core busy."""
        return time.process_time() - self._began - self._paused

    @property
    def wall_seconds(self) -> float:
        """Time that training has taken, with whatever the core did beside it."""
        return time.perf_counter() - self._wall_began - self._wall_paused

    def finish(self) -> None:
        """Tell how it ended."""
        self._say(reached=self._in_a_row == 2)

    def _evaluate(self, predict: Predict) -> np.ndarray:
        obs = np.stack([env.reset(seed=seed)[0] for env, seed in zip(self._envs, SEEDS, strict=True)])
        returns, running = np.zeros(EPISODES), np.ones(EPISODES, bool)
        while running.any():
            actions = predict(obs.astype(np.float32))
            for i in np.flatnonzero(running):
                obs[i], reward, terminated, truncated, _ = self._envs[i].step(actions[i])
                returns[i] += float(reward)
                running[i] = not (terminated or truncated)
        return returns

    def _say(self, **answer: Any) -> None:
        print(json.dumps(answer), file=self._out, flush=True)
