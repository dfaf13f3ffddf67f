"""Learn from demonstrations: a controller that you have shows how, and half of each batch is drawn from what it did.

python examples/demonstrations.py        (bisac train Park-v0 --demos FILE.npz does the same with a file)
"""

import gymnasium
import numpy as np
import own_environment  # noqa: F401  # registers Park-v0

import bisac

EPISODES = 10


def controller(observation: np.ndarray) -> np.ndarray:
    """Push towards the origin, and brake: what one can write down, and a policy can do better than."""
    position, speed = observation
    return np.clip([-0.5 * position - speed], -1, 1).astype(np.float32)


def demonstrate() -> bisac.replay.Dataset:
    """Let the controller drive, and keep every transition: five arrays with a row for each step."""
    env, rows = gymnasium.make("Park-v0"), []
    for seed in range(EPISODES):
        observation, _ = env.reset(seed=seed)
        over = False
        while not over:
            action = controller(observation)
            following, reward, terminated, truncated, _ = env.step(action)
            rows.append((observation, action, reward, following, terminated))  # truncated is not terminated
            observation, over = following, terminated or truncated
    arrays = [np.array(column) for column in zip(*rows, strict=True)]
    names = ("observation", "action", "reward", "next_observation", "terminated")
    np.savez("park.npz", **dict(zip(names, arrays, strict=True)))
    print(f"the controller's mean return: {arrays[2].sum() / EPISODES:.2f}")
    return bisac.replay.from_arrays(*arrays)


def main() -> None:
    """Train with and without the controller's transitions, for as many steps."""
    for name, demos in (("with", demonstrate()), ("without", None)):
        policy = bisac.train("Park-v0", algo="sac", steps=2_000, demos=demos, out=f"runs/{name}-demos", verbose=False)
        print(f"{name} demonstrations: {bisac.evaluate(policy, 'Park-v0', episodes=20).returns.mean():.2f}")


if __name__ == "__main__":
    main()
