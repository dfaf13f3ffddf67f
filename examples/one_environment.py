"""Train where the environment exists once, as a robot does: learn between episodes, and stop and go on.

python examples/one_environment.py
"""

import gymnasium

import bisac


def main() -> None:
    """Train in one environment; nothing is computed between two of its steps."""
    robot = gymnasium.make("Pendulum-v1")  # yours: with a time limit, for learning waits for an episode's end
    bisac.train(robot, algo="sac", steps=2_000, learn_at="episode", eval_episodes=2, out="runs/robot")
    bisac.resume("runs/robot", env=robot, steps=3_000)  # the next day
    robot.close()


if __name__ == "__main__":
    main()
