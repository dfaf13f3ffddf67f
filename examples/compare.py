"""Compare two algorithms honestly: several seeds, held-out episodes, an interval for the difference.

python examples/compare.py        (a few minutes; 'bisac sweep' and 'bisac report' do this for many tasks at once)
"""

import numpy as np
import own_environment  # noqa: F401  # registers Park-v0

import bisac

SEEDS = range(5)


def scores(algo: str) -> np.ndarray:
    """Return a score for each seed: the mean over episodes that training never saw."""
    found = []
    for seed in SEEDS:
        policy = bisac.train("Park-v0", algo, steps=3_000, seed=seed, out=f"runs/compare/{algo}/{seed}", verbose=False)
        found.append(bisac.evaluate(policy, episodes=20).returns.mean())
    return np.array(found)


def interval(a: np.ndarray, b: np.ndarray, draws: int = 10_000) -> tuple[float, float]:
    """Return the 95% interval of the difference of means: runs are drawn anew, with replacement."""
    rng = np.random.default_rng(0)
    differences = [rng.choice(a, len(a)).mean() - rng.choice(b, len(b)).mean() for _ in range(draws)]
    return tuple(np.quantile(differences, [0.025, 0.975]))


def main() -> None:
    """Train both, and say whether the difference is established."""
    ours, theirs = scores("sac"), scores("td3")
    low, high = interval(ours, theirs)
    print(f"sac {ours.mean():.2f}, td3 {theirs.mean():.2f}, difference {low:+.2f} to {high:+.2f}")
    print("established" if low > 0 or high < 0 else "not established: more seeds, or a longer budget, may tell")


if __name__ == "__main__":
    main()
