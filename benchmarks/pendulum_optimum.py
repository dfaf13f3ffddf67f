"""What a perfect controller gets on Pendulum-v1: dynamic programming on a grid, then played in the environment.

python benchmarks/pendulum_optimum.py prints the mean over random starts, and that of a run's own evaluation episodes.
"""

import gymnasium
import numpy as np
from scipy.ndimage import map_coordinates

from bisac.collect.evaluate import EVALUATION_STREAM
from bisac.envs.host.envs import episode_seed

ANGLES, SPEEDS, STEPS = 181, 161, 200


def step(angle: np.ndarray, speed: np.ndarray, torque: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the next state and the cost of a step, by the environment's equations."""
    cost = angle**2 + 0.1 * speed**2 + 0.001 * torque**2
    speed = np.clip(speed + (15 * np.sin(angle) + 3 * torque) * 0.05, -8, 8)
    return wrapped(angle + speed * 0.05), speed, cost


def wrapped(angle: np.ndarray) -> np.ndarray:
    """Return an angle in [-pi, pi)."""
    return (angle + np.pi) % (2 * np.pi) - np.pi


def at(cost: np.ndarray, angle: np.ndarray, speed: np.ndarray) -> np.ndarray:
    """Interpolate the cost to go at these states."""
    place = (angle + np.pi) / (2 * np.pi) * (ANGLES - 1), (speed + 8) / 16 * (SPEEDS - 1)
    return map_coordinates(cost, np.stack(place), order=1)


def cost_to_go() -> np.ndarray:
    """Return the least cost of an episode from every state of the grid."""
    angle, speed = np.meshgrid(np.linspace(-np.pi, np.pi, ANGLES), np.linspace(-8, 8, SPEEDS), indexing="ij")
    moves = [step(angle, speed, torque) for torque in np.linspace(-2, 2, 17)]
    least = np.zeros_like(angle)
    for _ in range(STEPS):
        least = np.min([cost + at(least, *after) for *after, cost in moves], axis=0)
    return least


def play(least: np.ndarray, seed: int) -> float:
    """Return what the greedy controller gets in an episode of the environment."""
    env, torques, total = gymnasium.make("Pendulum-v1"), np.linspace(-2, 2, 81), 0.0
    env.reset(seed=seed)
    for _ in range(STEPS):
        angle, speed = env.unwrapped.state  # pyright: ignore[reportAttributeAccessIssue]
        *after, cost = step(wrapped(np.full_like(torques, angle)), np.full_like(torques, speed), torques)
        best = torques[np.argmin(cost + at(least, *after))]
        total += float(env.step(np.array([best], np.float32))[1])
    return total


if __name__ == "__main__":
    least = cost_to_go()
    starts = np.random.default_rng(0).uniform([-np.pi, -1], [np.pi, 1], (20_000, 2)).T
    returns = -at(least, *starts)
    print(f"all starts: {returns.mean():.1f}, standard deviation {returns.std():.1f}")
    played = [play(least, episode_seed(0, EVALUATION_STREAM, index)) for index in range(10)]
    print(f"the ten evaluation episodes of seed 0, played: {np.mean(played):.1f}")
