"""A Hopper whose episodes end in both ways within a small run."""

from collections import Counter
from typing import ClassVar

import gymnasium as gym
from gymnasium.envs.mujoco.hopper_v5 import HopperEnv


class ShortHopper(HopperEnv):
    """Hopper with a time limit short enough that episodes are cut off, as well as ended by a fall, in a small run."""

    ended: ClassVar[Counter[str]] = Counter()

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return super().reset(seed=seed, options=options)

    def step(self, action):
        obs, reward, terminated, _, info = super().step(action)
        self.steps += 1
        truncated = self.steps >= 25
        if terminated or truncated:
            self.ended["a fall" if terminated else "the time limit"] += 1
        return obs, reward, terminated, truncated, info


gym.register("ShortHopper-v0", "short_hopper:ShortHopper")
HOPPER = "short_hopper:ShortHopper-v0"
