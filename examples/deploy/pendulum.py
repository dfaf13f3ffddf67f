"""Drive Pendulum with an exported policy: onnxruntime and Gymnasium, without bisac.

bisac train Pendulum-v1 --steps 6000 --out runs/pendulum
bisac export runs/pendulum --format onnx --out pendulum.onnx
python examples/deploy/pendulum.py pendulum.onnx
"""

import sys

import gymnasium as gym
import numpy as np
import onnxruntime


def main(path: str, episodes: int = 5) -> None:
    """Play episodes with the policy in this file, and print the return of each."""
    session = onnxruntime.InferenceSession(path)
    print(f"trained by {session.get_modelmeta().custom_metadata_map['algorithm']}")
    env = gym.make("Pendulum-v1")
    for episode in range(episodes):
        observation, _ = env.reset(seed=episode)
        total, over = 0.0, False
        while not over:
            batch = np.asarray(observation, np.float32)[None]
            action = session.run(["action"], {"observation": batch})[0][0]
            observation, reward, terminated, truncated, _ = env.step(action)
            total, over = total + float(reward), terminated or truncated
        print(f"episode {episode}: return {total:.1f}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
