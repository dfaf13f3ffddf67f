"""Eight seeds at once on a task in JAX: one process, all devices, a run folder each; then what seeds are worth.

python examples/device_seeds.py
"""

import subprocess
import sys

import numpy as np

import bisac

SEEDS = 8
TRAIN = "train classic/pendulum --algo sac --critic-norm none --hidden 64 64 --steps 6000 --out runs/eight"


def main() -> None:
    """Train all seeds side by side, judge each policy on the same episodes, and tell how far they are apart."""
    command = [sys.executable, "-m", "bisac", *TRAIN.split(), "--seeds", f"0:{SEEDS}"]
    subprocess.run(command, check=True)  # a process of its own: JAX then offers as many devices as there are cores
    policies = [bisac.load(f"runs/eight/seed{seed}") for seed in range(SEEDS)]
    means = np.array([bisac.evaluate(policy, episodes=20).returns.mean() for policy in policies])
    error = means.std(ddof=1) / np.sqrt(SEEDS)
    print(f"each seed: {', '.join(f'{mean:.0f}' for mean in means)}")
    print(f"mean {means.mean():.0f}, standard error {error:.0f}: quote this, not the best one ({means.max():.0f})")


if __name__ == "__main__":
    main()
