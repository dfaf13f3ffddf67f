"""An environment of one's own: park a cart at the origin, at rest.

python examples/own_environment.py
bisac train own_environment:Park-v0 --algo sac --steps 6000       (in this folder)
"""

import gymnasium
import numpy as np

import bisac


class Park(gymnasium.Env):
    """A cart on a track; the action pushes it. It starts anywhere, and should stand still at the origin."""

    observation_space = gymnasium.spaces.Box(-4.0, 4.0, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        """Put the cart somewhere; everything random comes from the seed, so that runs repeat."""
        super().reset(seed=seed, options=options)
        self.state = np.array([self.np_random.uniform(-1, 1), 0.0], np.float32)
        return self.state.copy(), {}

    def step(self, action):
        """Push the cart for a tenth of a second; distance, speed and effort cost."""
        position, speed = self.state
        speed = np.clip(speed + 0.1 * float(action[0]), -4, 4)
        position = np.clip(position + 0.1 * speed, -4, 4)
        self.state = np.array([position, speed], np.float32)
        reward = -float(abs(position) + 0.1 * abs(speed) + 0.01 * float(action[0]) ** 2)
        parked = bool(abs(position) < 0.05 and abs(speed) < 0.05)
        return self.state.copy(), reward, False, False, {"is_success": parked}


gymnasium.register("Park-v0", entry_point=Park, max_episode_steps=100)  # a time limit truncates, it does not terminate


def main() -> None:
    """Train until the budget is used, then count how often the cart is parked."""
    policy = bisac.train("Park-v0", algo="sac", steps=6_000, out="runs/park")
    judged = bisac.evaluate(policy, "Park-v0", episodes=50)
    print(f"parked in {judged.success_rate:.0%} of 50 episodes, mean return {judged.returns.mean():.2f}")


if __name__ == "__main__":
    main()
