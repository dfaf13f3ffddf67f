"""How much of another's return a contestant keeps: python benchmarks/ratio.py SWEEP.

Scores are final scores as a report has them, each divided by the mean of the one compared with on that task, and pooled
over the tasks: the ratio of the two interquartile means, with a bootstrap's interval. Below it stands what the same
ratio is where both sides are drawn from the runs of the one compared with: no number of seeds can show less than that.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from bisac.plotting.statistics import REPS, bootstrap, interquartile_mean
from bisac.report.data import SweepData, read_sweep
from bisac.report.scores import final_score

SEEDS = (5, 10, 20, 40)


@dataclass(frozen=True)
class Options:
    """Which runs to compare."""

    sweep: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="SWEEP")]
    """A sweep's folder."""
    over: str = "sac"
    """The contestant to compare with."""


def scores(data: SweepData, name: str):
    """Final scores, a row a seed and a column a task, of as many seeds as all tasks have."""
    columns = [[final_score(run) for run in data.of(env, name)] for env in data.envs]
    seeds = min(map(len, columns))
    return np.array([column[:seeds] for column in columns]).T[..., None]


def ratio(left, right):
    """The ratio of two interquartile means."""
    return interquartile_mean(left) / interquartile_mean(right)


def null(reference, seeds: int):
    """The interval of the ratio where there is no difference, with so many seeds on either side."""
    rng, tasks = np.random.default_rng(0), np.arange(reference.shape[1])
    left, right = (reference[rng.integers(len(reference), size=(REPS, seeds, len(tasks))), tasks] for _ in range(2))
    return np.quantile(ratio(left, right), [0.025, 0.975])


def main(options: Options):
    """Print the table."""
    data = read_sweep(options.sweep)
    reference = scores(data, options.over)
    unit = reference.mean(axis=0)
    for contestant in data.contestants:
        if contestant.name != options.over:
            told = bootstrap(ratio, scores(data, contestant.name) / unit, reference / unit)
            assert told.interval is not None
            low, high = told.interval
            print(f"{contestant.name} / {options.over}: {told.values[0]:.2f} ({low[0]:.2f} to {high[0]:.2f}), ", end="")
            print(f"{told.seeds} seeds on {len(data.envs)} tasks")
    for seeds in SEEDS:
        low, high = null(reference / unit, seeds)
        print(f"{options.over} / {options.over}, {seeds} seeds drawn: {low:.2f} to {high:.2f}")


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
