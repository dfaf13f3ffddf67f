"""Steps a second of the backends: Hopper-v5, and an environment that takes 5 ms a step.

    python benchmarks/backends.py [--rounds 7] [--seconds 1]

The backends take turns, so that whatever else the machine does falls on all of them; the median of the rounds counts.
"""

import argparse
import os
import platform
import statistics
import time
from contextlib import ExitStack, closing
from importlib.metadata import version
from itertools import product

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from bisac.envs.host.backends import BackendName
from bisac.envs.host.envs import HostEnvs
from bisac.envs.task import Task


class Slow(gym.Env):
    """Sleeps 5 ms a step, as one that waits for a simulator would."""

    observation_space = spaces.Box(-1.0, 1.0, (3,))
    action_space = spaces.Box(-1.0, 1.0, (2,))

    def reset(self, *, seed: int | None = None, options: dict | None = None):
        """Begin nothing."""
        super().reset(seed=seed, options=options)
        return np.zeros(3, np.float32), {}

    def step(self, action: np.ndarray):  # noqa: ARG002
        """Sleep."""
        time.sleep(0.005)
        return np.zeros(3, np.float32), 0.0, False, False, {}


def steps_per_second(envs: HostEnvs, seconds: float) -> float:
    """Environment steps, summed over the environments, with random actions."""
    actions = np.random.default_rng(0).uniform(-1, 1, (256, envs.num_envs, envs.spec.action_dim)).astype(np.float32)
    begin, taken = time.perf_counter(), 0
    while (spent := time.perf_counter() - begin) < seconds:
        envs.step(actions[taken % 256])
        taken += 1
    return taken * envs.num_envs / spent


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds")
    parser.add_argument("--seconds", type=float, default=1.0, help="seconds of each backend in a round")
    options = parser.parse_args()
    packages = ", ".join(f"{name} {version(name)}" for name in ("gymnasium", "mujoco", "envpool", "numpy"))
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}, {packages}")
    hopper: list[BackendName] = ["sync", "async", "envpool"]
    cases = [("Hopper-v5", Task("Hopper-v5"), hopper), ("5 ms a step", Task(Slow), hopper[:2])]
    for (name, task, backends), count in product(cases, (1, 8, 16)):
        with ExitStack() as stack:
            made = {backend: stack.enter_context(closing(HostEnvs(task, count, 0, backend))) for backend in backends}
            for envs in made.values():
                envs.reset()
            rates: dict[str, list[float]] = {backend: [] for backend in backends}
            for _, backend in product(range(options.rounds), backends):
                rates[backend].append(steps_per_second(made[backend], options.seconds))
        for backend, measured in rates.items():
            low, high = min(measured), max(measured)
            print(f"{name:12} {count:2} {backend:8} {statistics.median(measured):8,.0f} ({low:,.0f} to {high:,.0f})")


if __name__ == "__main__":
    main()
