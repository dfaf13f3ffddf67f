"""A goal task that notes all it does in the plainest way: a list of episodes, each a list of steps."""

from collections import OrderedDict
from itertools import count

import gymnasium as gym
import numpy as np
from gymnasium import spaces

GOAL = spaces.Box(-10.0, 10.0, (2, 1), np.float64)


class Wanderer(gym.Env):
    """It leaps about, whatever the action. A step's true reward is 100 more than what its compute_reward says."""

    observation_space = spaces.Dict(  # ordered, so that it is not sorted
        OrderedDict(desired_goal=GOAL, observation=spaces.Box(0, 1000, (2,)), achieved_goal=GOAL)
    )
    action_space = spaces.Box(-1.0, 1.0, (1,))
    numbers = count()

    def __init__(self):
        self.episodes, self.number, self.time = [], next(self.numbers), 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.goal, self.place = self.leap(), self.leap()
        self.episodes.append([])
        return self.observed(), {}

    def leap(self):
        return self.np_random.uniform(0, 1, (2, 1)).astype(np.float32).astype(np.float64)

    def observed(self):
        who = np.array([self.number, self.time], np.float32)
        return {"achieved_goal": self.place, "desired_goal": self.goal, "observation": who}

    def step(self, action):
        before = self.observed()
        self.time += 1  # it tells which step this is, and so does not begin anew with an episode
        self.place = self.leap()
        terminated, truncated = (bool(happens) for happens in self.np_random.random(2) < 0.1)
        reward, after = float(self.compute_reward(self.place, self.goal, {})) + 100.0, self.observed()
        self.episodes[-1].append((before, reward, terminated, after))
        return after, reward, terminated, truncated, {}

    def compute_reward(self, achieved, desired, info):
        assert achieved.dtype == np.float64
        assert achieved.shape[-2:] == (2, 1)
        return -np.abs(achieved - desired).sum(axis=(-2, -1))

    def compute_terminated(self, achieved, desired, info):
        return bool((achieved == desired).all())  # of one pair at a time
