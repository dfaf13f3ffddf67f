"""Tiny environments whose optimal values and actions are known. All observe one number and take two actions."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces

BEST_ACTION = np.array([0.4, -0.3])


class Probe(gym.Env):
    observation_space = spaces.Box(-10.0, 10.0, (1,))
    action_space = spaces.Box(-1.0, 1.0, (2,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        self.state = self.first_state()
        return self.obs(), {}

    def first_state(self):
        return 0.0

    def obs(self):
        return np.array([self.state], np.float32)


class Shaped(Probe):
    """An environment with the given spaces."""

    def __init__(self, observation_space=None, action_space=None):
        self.observation_space = observation_space or Probe.observation_space
        self.action_space = action_space or Probe.action_space
        self.received = []

    def obs(self):
        return self.observation_space.sample()

    def step(self, action):
        self.received.append(action)
        return self.obs(), 0.0, False, False, {}


class Bandit(Probe):
    """One step; r = -d'Cd with d = a - BEST_ACTION. With C diagonal the action dimensions are independent."""

    coupling = 0.0

    def step(self, action):
        d = action - BEST_ACTION
        return self.obs(), float(-(d @ d) - 2.0 * self.coupling * d[0] * d[1]), True, False, {}


class CorrelatedBandit(Bandit):
    coupling = 0.7


class Chain(Probe):
    """Two steps: no reward, then one. So Q at the start is gamma, whatever the actions."""

    def step(self, action):
        self.time += 1
        self.state = 1.0
        return self.obs(), float(self.time == 2), self.time == 2, False, {}


class Truncated(Probe):
    """A reward of one a step for ever, in episodes of five steps: truncation is no end, so Q = 1 / (1 - gamma)."""

    def step(self, action):
        self.time += 1
        return self.obs(), 1.0, False, self.time == 5, {}


class Contextual(Probe):
    """One step; the best first action is half the observation, the second's is minus that."""

    def first_state(self):
        return float(self.np_random.choice([-1.0, 1.0]))

    def step(self, action):
        target = np.array([0.5, -0.5]) * self.state
        return self.obs(), float(-np.sum((action - target) ** 2)), True, False, {}


class LinearQuadratic(Probe):
    """x' = x + 0.5 (a1 + a2), r = -(x^2 + 0.1 |a|^2), for 20 steps: Riccati's equation gives gain and value."""

    def first_state(self):
        return float(self.np_random.uniform(-1.0, 1.0))

    def step(self, action):
        self.time += 1
        reward = -(self.state**2 + 0.1 * np.sum(action**2))
        self.state = float(np.clip(self.state + 0.5 * action.sum(), -10.0, 10.0))
        return self.obs(), float(reward), False, self.time == 20, {}


class Counter(Probe):
    """Observes the steps taken since its seed's number; terminates after 3, 4 or 5 steps, or is truncated after 4.

    The last observation of an episode is unlike any first one, so that a replay memory that mixes them up shows it.
    """

    def first_state(self):
        self.length = int(self.np_random.integers(3, 6))
        return 0.0

    def step(self, action):
        self.time += 1
        self.state = float(self.time)
        return self.obs(), float(action[0]), self.time == self.length, self.time >= 4, {}
