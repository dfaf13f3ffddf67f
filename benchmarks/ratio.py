"""How much of another's return a contestant keeps: python benchmarks/ratio.py SWEEP.

Scores are final scores as a report has them, each divided by the mean of the one compared with on that task, and pooled
over the tasks: the ratio of the two interquartile means, with a bootstrap's interval, from the seeds that both have on
all tasks. It stands there twice. Once the seeds of each side are drawn by themselves. Once they are drawn in pairs: two
runs of one seed begin with the same networks and the same random steps, and are one run as long as their updates agree.
Below it stands what the ratio is where both sides are drawn from the runs of the one compared with: unpaired, no number
of seeds can show less than that.
"""

from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from bisac.plotting.statistics import REPS, bootstrap, interquartile_mean
from bisac.report.data import SweepData, SweptRun, read_sweep
from bisac.report.scores import final_score

SEEDS = (5, 10, 20, 40)


@dataclass(frozen=True)
class Options:
    """Which runs to compare."""

    sweep: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="SWEEP")]
    """A sweep's folder."""
    over: str = "sac"
    """The contestant to compare with."""


def runs(data: SweepData, *names: str) -> list[list[list[SweptRun]]]:
    """The runs of the seeds that all of these contestants have on all tasks: a list a contestant, a row a seed."""
    found = {(run.env, run.contestant, run.seed): run for run in data.runs if run.complete}
    seeds = sorted({run.seed for run in data.runs})
    shared = [seed for seed in seeds if all((env, name, seed) in found for env in data.envs for name in names)]
    return [[[found[env, name, seed] for env in data.envs] for seed in shared] for name in names]


def scores(rows: list[list[SweptRun]]) -> np.ndarray:
    """Final scores, a row a seed and a column a task."""
    return np.array([[final_score(run) for run in row] for row in rows])[..., None]


def equal(left: SweptRun, right: SweptRun) -> bool:
    """Whether two runs are the same, evaluation for evaluation."""
    return np.array_equal(left.evaluations.returns, right.evaluations.returns)


def ratio(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The ratio of two interquartile means."""
    return interquartile_mean(left) / interquartile_mean(right)


def ratio_of_pairs(pairs: np.ndarray) -> np.ndarray:
    """The ratio of two interquartile means whose scores lie beside each other in the last axis."""
    return ratio(pairs[..., :1], pairs[..., 1:])


def null(reference: np.ndarray, seeds: int) -> np.ndarray:
    """The interval of the ratio where there is no difference, with so many seeds on either side."""
    rng, tasks = np.random.default_rng(0), np.arange(reference.shape[1])
    left, right = (reference[rng.integers(len(reference), size=(REPS, seeds, len(tasks))), tasks] for _ in range(2))
    return np.quantile(ratio(left, right), [0.025, 0.975])


def main(options: Options) -> None:
    """Print the table."""
    data = read_sweep(options.sweep)
    for contestant in data.contestants:
        if contestant.name == options.over:
            continue
        rows = runs(data, contestant.name, options.over)
        ours, theirs = map(scores, rows)
        unit = theirs.mean(axis=0)
        apart = bootstrap(ratio, ours / unit, theirs / unit)
        paired = bootstrap(ratio_of_pairs, np.concatenate([ours / unit, theirs / unit], axis=-1))
        same = sum(equal(*pair) for pair in zip(*map(chain.from_iterable, rows), strict=True))
        assert apart.interval is not None
        assert paired.interval is not None
        (low, high), (near, far) = ([float(bound[0]) for bound in told.interval] for told in (apart, paired))
        print(f"{contestant.name} / {options.over}: {apart.values[0]:.2f} ({low:.2f} to {high:.2f}), ", end="")
        print(f"in pairs {near:.2f} to {far:.2f}; {len(ours)} seeds on {len(data.envs)} tasks, ", end="")
        print(f"{same} of {ours.size} pairs are one run")
    (rows,) = runs(data, options.over)
    reference = scores(rows)
    for seeds in SEEDS:
        low, high = null(reference / reference.mean(axis=0), seeds)
        print(f"{options.over} / {options.over}, {seeds} seeds drawn: {low:.2f} to {high:.2f}")


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
