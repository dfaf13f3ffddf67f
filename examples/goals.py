"""A goal task of one's own: bring a puck on ice to wherever it is wanted, with no reward before it is there.

python examples/goals.py
bisac train goals:Dock-v0 --algo sac --her --steps 10000       (in this folder)
"""

import gymnasium
import numpy as np

import bisac

PLACE = gymnasium.spaces.Box(-2.0, 2.0, (2,), np.float32)


class Dock(gymnasium.Env):
    """A puck that the action pushes. It shall stay at the goal, which is another in each episode."""

    observation_space = gymnasium.spaces.Dict(
        observation=gymnasium.spaces.Box(-2.0, 2.0, (4,), np.float32), achieved_goal=PLACE, desired_goal=PLACE
    )
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        """Put the puck into the middle, and the goal anywhere."""
        super().reset(seed=seed, options=options)
        self.place, self.speed = np.zeros((2, 2), np.float32)
        self.goal = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return self.observe(), {}

    def observe(self):
        """What was reached, and what is wanted, have names: --her needs them."""
        seen = np.concatenate([self.place, self.speed])
        return {"observation": seen, "achieved_goal": self.place.copy(), "desired_goal": self.goal.copy()}

    def step(self, action):
        """Push the puck for a tenth of a second."""
        self.speed = np.clip(self.speed + 0.3 * action, -2, 2).astype(np.float32)
        self.place = np.clip(self.place + 0.1 * self.speed, -2, 2).astype(np.float32)
        reward = float(self.compute_reward(self.place, self.goal, {}))
        return self.observe(), reward, False, False, {"is_success": reward == 0.0}

    def compute_reward(self, achieved_goal, desired_goal, info):  # noqa: ARG002  info is empty in hindsight
        """Return 0 at the goal, else -1; of many goals at once too, along leading axes."""
        return np.where(np.linalg.norm(achieved_goal - desired_goal, axis=-1) < 0.1, 0.0, -1.0)


gymnasium.register("Dock-v0", entry_point=Dock, max_episode_steps=50)


def main() -> None:
    """Learn from what was reached by chance, then count how often the puck ends where it is wanted."""
    policy = bisac.train("Dock-v0", algo="sac", steps=10_000, her=True, out="runs/dock")
    judged = bisac.evaluate(policy, "Dock-v0", episodes=50)
    print(f"docked in {judged.success_rate:.0%} of 50 episodes, mean return {judged.returns.mean():.1f}")


if __name__ == "__main__":
    main()
