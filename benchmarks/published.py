"""Our learning curves beside published ones: python benchmarks/published.py RUNS, a folder of TASK/CONTESTANT/seedK.

It prints a table of mean returns and draws a picture. Published: Gymnasium's v4 tasks, means over seeds
(results/published). Ours: v5, the evaluation at that step.
"""

import csv
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from measuring import panels

from bisac.plotting.style import thousands
from bisac.runs.folder import RunFolder
from bisac.runs.log import read_log

HERE = Path(__file__).parent
METHODS = {
    "XQC": "#cc79a7",
    "REDQ (UTD 20)": "#e69f00",
    "CrossQ": "#009e73",
    "FlashSAC": "#0072b2",
    "SAC": "#8c8c8c",
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
    at: int = 50_000
    """Tell the returns at this step."""
    out: Path = HERE.parent / "docs" / "results" / "published.png"
    """The picture."""


def markdown(options: Options) -> str:
    """Mean returns at a step, ours first, the highest of each task in bold; and the range of our seeds."""
    published, ours = read_published(), read_tasks(options)
    found = {task: returns[:, list(steps).index(options.at)] for task, (steps, returns) in ours.items()}
    rows = {"bisac: SAC, v5; the default settings": {task: each.mean() for task, each in found.items()}}
    for method in METHODS:
        means = {task: dict(published[method, _bare(task)]).get(options.at) for task in found}
        if all(means.values()):
            rows[f"published {method}, v4"] = means
    best = {task: max(means[task] for means in rows.values()) for task in found}
    lines = [
        f"| mean return at {options.at:,} steps | {' | '.join(map(_bare, found))} |",
        "|---" * (1 + len(found)) + "|",
    ]
    for label, means in rows.items():
        cells = (f"**{v:,.0f}**" if v == best[task] else f"{v:,.0f}" for task, v in means.items())
        lines.append(f"| {label} | {' | '.join(cells)} |")
    seeds = "; ".join(f"{_bare(task)} {each.min():,.0f} to {each.max():,.0f}" for task, each in found.items())
    return "\n".join([*lines, "", f"Our seeds: {seeds}."])


def draw(options: Options) -> None:
    """Draw our mean and seeds, and the published means."""
    published, ours = read_published(), read_tasks(options)
    titles = [f"{task}; published: v4" for task in ours]
    with panels(options.out, titles, min(3, len(ours)), (3.4 * min(3, len(ours)), 2.9)) as axes:
        for axis, (task, (steps, returns)) in zip(axes, ours.items(), strict=False):
            for row in returns:
                axis.plot(steps, row, color=OURS, lw=0.6, alpha=0.4)
            axis.plot(steps, returns.mean(axis=0), color=OURS, lw=2, label=f"bisac, SAC ({len(returns)} seeds)")
            for method, colour in METHODS.items():
                points = [(s, r) for s, r in published[method, _bare(task)] if s <= options.steps]
                axis.plot(*zip(*points, strict=True), color=colour, lw=1, marker="o", ms=3, label=method)
            axis.set(xlabel="environment steps", ylabel="return")
            axis.xaxis.set_major_formatter(thousands)
            axis.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes[0].legend(frameon=False, fontsize=6)


def read_published() -> dict[tuple[str, str], list[tuple[int, float]]]:
    """Mean returns by method and task."""
    found = defaultdict(list)
    with (HERE.parent / "results" / "published" / "mujoco_v4.csv").open() as file:
        for row in csv.DictReader(file):
            found[row["method"], _bare(row["task"])].append((int(row["step"]), float(row["mean_return"])))
    return found


def read_tasks(options: Options) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """By task: steps, and a row of returns for each seed, as far as all have come."""
    found = {}
    for folder in sorted(options.runs.glob(f"*/{options.contestant}")):
        logs = [read_log(RunFolder(path)) for path in sorted(folder.glob("seed*"))]
        length = min(map(len, logs))
        steps = np.array([row["step"] for row in logs[0][:length]])
        found[folder.parent.name] = steps, np.array([[row["eval_return"] for row in log[:length]] for log in logs])
    return found


def _bare(task: str) -> str:
    """The task without its version."""
    return task.rpartition("-v")[0]


if __name__ == "__main__":
    given = tyro.cli(Options)
    print(markdown(given))
    draw(given)
