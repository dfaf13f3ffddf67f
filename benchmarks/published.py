"""Our learning curves beside published ones: python benchmarks/published.py RUNS, a folder of TASK/CONTESTANT/seedK.

It prints a table of mean returns at the published steps and draws docs/results/published.png. Published: Gymnasium's v4
tasks, means over seeds (results/published). Ours: v5, the evaluation at that step.
"""

import csv
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from measuring import panels

from bisac.runs.folder import RunFolder
from bisac.runs.log import read_log

HERE = Path(__file__).parent
METHODS = {
    "SAC": "#8c8c8c",
    "CrossQ": "#009e73",
    "XQC": "#cc79a7",
    "FlashSAC": "#0072b2",
    "REDQ (UTD 20)": "#e69f00",
}
OURS = "#d55e00"


@dataclass(frozen=True)
class Options:
    """What to put beside the published curves."""

    runs: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUNS")]
    """A folder with TASK/CONTESTANT/seedK, such as a sweep's."""
    contestant: str = "sac"
    """Whose runs."""
    steps: int = 100_000
    """Draw so far."""
    out: Path = HERE.parent / "docs" / "results" / "published.png"
    """The picture."""


def main(options: Options) -> None:
    """Tell and draw."""
    published = read_published()
    tasks = sorted(path.parent.name for path in options.runs.glob(f"*/{options.contestant}"))
    titles = [f"{task}; published: v4" for task in tasks]
    with panels(options.out, titles, min(3, len(tasks)), (3.4 * min(3, len(tasks)), 2.9)) as axes:
        for axis, task in zip(axes, tasks, strict=False):
            steps, returns = read_ours(options.runs / task / options.contestant)
            name = task.rpartition("-v")[0]
            for row in returns:
                axis.plot(steps, row, color=OURS, lw=0.6, alpha=0.4)
            axis.plot(steps, returns.mean(axis=0), color=OURS, lw=2, label=f"bisac, SAC ({len(returns)} seeds)")
            for method, colour in METHODS.items():
                points = [(s, r) for s, r in published[method, name] if s <= options.steps]
                axis.plot(*zip(*points, strict=True), color=colour, lw=1, marker="o", ms=3, label=method)
                tell(task, method, points, steps, returns)
            axis.set(xlabel="environment steps", ylabel="return")
        axes[0].legend(frameon=False, fontsize=6)


def tell(task: str, method: str, points: list[tuple[int, float]], steps: np.ndarray, returns: np.ndarray) -> None:
    """One line a published point that we have reached."""
    for step, value in points:
        if step and step <= steps[-1]:
            ours = returns[:, np.argmin(np.abs(steps - step))]
            each = ", ".join(f"{r:,.0f}" for r in ours)
            print(f"{task} at {step:,}: {method} {value:,.0f}; ours {ours.mean():,.0f} (seeds: {each})")


def read_published() -> dict[tuple[str, str], list[tuple[int, float]]]:
    """Mean returns by method and task."""
    found = defaultdict(list)
    with (HERE.parent / "results" / "published" / "mujoco_v4.csv").open() as file:
        for row in csv.DictReader(file):
            task = row["task"].rpartition("-v")[0]
            found[row["method"], task].append((int(row["step"]), float(row["mean_return"])))
    return found


def read_ours(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and a row of returns for each seed, as far as all have come."""
    logs = [read_log(RunFolder(path)) for path in sorted(folder.glob("seed*"))]
    length = min(map(len, logs))
    steps = np.array([row["step"] for row in logs[0][:length]])
    return steps, np.array([[row["eval_return"] for row in log[:length]] for log in logs])


if __name__ == "__main__":
    main(tyro.cli(Options))
