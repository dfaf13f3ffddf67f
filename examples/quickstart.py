"""Train, judge, keep and use a policy: Pendulum-v1 in about half a minute.

python examples/quickstart.py
"""

import gymnasium

import bisac


def main() -> None:
    """Train on Pendulum-v1, then act with the policy that was saved."""
    policy = bisac.train("Pendulum-v1", algo="sac", steps=6_000, out="runs/quickstart")
    judged = bisac.evaluate(policy, episodes=20)  # episodes that training never saw
    print(f"mean return over 20 episodes: {judged.returns.mean():.0f}")

    policy.save("pendulum.safetensors")
    policy = bisac.load("pendulum.safetensors")
    env = gymnasium.make("Pendulum-v1")
    observation, _ = env.reset(seed=0)
    for _ in range(200):
        action, _ = policy.predict(observation, deterministic=True)
        observation, *_ = env.step(action)
    print(f"after 200 steps the pole stands at cos = {observation[0]:.2f} (1 is upright)")


if __name__ == "__main__":
    main()
