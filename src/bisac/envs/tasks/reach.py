"""A point that moves as fast as gated actuators push it, and shall be at the origin."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from bisac.envs.tasks.arguments import no_pictures, number, whole
from bisac.envs.tasks.gate import Gate


class GatedReach(gym.Env[np.ndarray, np.ndarray]):
    """Move a point to the origin, and keep it there, by gated actuators.

    The point lies in thick oil: it has no momentum, and each step moves it, in each dimension, by `speed` times the
    gate's response to the command. Walls keep it within [-1, 1]. It starts anywhere there, and the reward of a step is
    minus the mean over the dimensions of the distance from 0 after it.

    So the best is to go to 0 at full speed, in each dimension by itself, and to stay: a start x brings the mean over
    the dimensions of -sum_k max(|x_i| - k speed, 0), k = 1, 2, ..., which is what `best_return` adds up.

    Returns: random commands -48.7 and the best -3.0 (means of 1,000 episodes), the best without the detents -11.6 (of
    200). SAC -14.7, -10.7, -10.7 in three seeds after 8,000 steps with `--critic-norm none --hidden 64 64
    --initial-temperature 0.05 --gamma 0.9 --num-envs 4`, but -4.2 and -3.1 in two after 24,000; with `--hidden 128 128`
    alone -30.1, -8.1, -22.0 after 8,000.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  as Gymnasium declares it

    def __init__(
        self,
        dims: int = 2,
        speed: float = 0.05,
        centre: float = Gate.centre,
        width: float = Gate.width,
        weak: float = Gate.weak,
        crossed: bool = Gate.crossed,
        render_mode: str | None = None,
    ):
        no_pictures(render_mode)
        self.dims = whole("dims", dims, 1, 4)
        self.speed = number("speed", speed, 0, 1, above=True)
        self.gate = Gate(centre, width, weak, crossed)
        self.observation_space = spaces.Box(-1.0, 1.0, (self.dims,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (self.dims,), np.float32)
        self._place = np.zeros(self.dims)

    def best_return(self, start: np.ndarray, steps: int = 100) -> float:
        """Return the most that an episode of so many steps can bring, from the observation it starts with."""
        travelled = self.speed * np.arange(1, steps + 1)[:, None]
        return -float(np.maximum(np.abs(start) - travelled, 0.0).sum(axis=0).mean())

    def best_action(self, place: np.ndarray) -> np.ndarray:
        """Return commands that go to the origin at full speed, and stay there."""
        return self.gate.command(np.clip(-place / self.speed, -1.0, 1.0)).astype(np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Draw where the point starts."""
        super().reset(seed=seed, options=options)
        self._place = self.np_random.uniform(-1.0, 1.0, self.dims)
        return self._place.astype(np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Push the point."""
        moved = self._place + self.speed * self.gate.response(action)
        self._place = np.minimum(np.maximum(moved, -1.0), 1.0)
        return self._place.astype(np.float32), -float(np.abs(self._place).mean()), False, False, {}
