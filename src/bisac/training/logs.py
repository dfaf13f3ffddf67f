"""What a run tells while it goes: a row of progress.csv, TensorBoard events, the learning curve."""

import csv
import math
from pathlib import Path

from tensorboardX import SummaryWriter

from bisac.training.run_dir import RunDir

Row = dict[str, float | None]
"""One line of the log: None where there is nothing to tell yet."""

LEADING = ("step", "wall_time", "eval_return", "eval_return_std", "episode_return", "episode_length")


class Log:
    """Appends rows to progress.csv and to TensorBoard's events."""

    def __init__(self, run_dir: RunDir, metrics: list[str]):
        self.columns = [*LEADING, *sorted(metrics)]
        self._path = run_dir.progress
        self._events = SummaryWriter(str(run_dir.path))
        self._append(self.columns)

    def write(self, row: Row) -> None:
        """Add a row, on disk when this returns."""
        values = [row.get(name) for name in self.columns]
        self._append(["" if value is None else repr(value) for value in values])
        step = int(row["step"] or 0)
        for name, value in zip(self.columns[1:], values[1:], strict=True):
            if value is not None:
                self._events.add_scalar(_tag(name), value, step)
        self._events.flush()

    def close(self) -> None:
        """Finish the event file."""
        self._events.close()

    def _append(self, fields: list[str]) -> None:
        with self._path.open("a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(fields)


def read_progress(path: Path) -> list[Row]:
    """The rows of a progress.csv."""
    with path.open(newline="") as file:
        return [{name: float(value) if value else None for name, value in row.items()} for row in csv.DictReader(file)]


def draw_curve(rows: list[Row], path: Path, title: str) -> None:
    """The learning curve: evaluation return with its spread, and the training episodes' return."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # slow to import, and wanted only here
    from matplotlib.figure import Figure

    evaluated = [row for row in rows if row["eval_return"] is not None]
    steps = [row["step"] or 0.0 for row in evaluated]
    mean = [row["eval_return"] or 0.0 for row in evaluated]
    spread = [row["eval_return_std"] or 0.0 for row in evaluated]
    explored = [(row["step"] or 0.0, row["episode_return"]) for row in rows if row["episode_return"] is not None]

    figure = Figure(figsize=(7, 4.2), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    if explored:
        axes.plot(*zip(*explored, strict=True), color="0.6", lw=1.2, label="training episodes (exploring)")
    low, high = ([m + sign * s for m, s in zip(mean, spread, strict=True)] for sign in (-1, 1))
    axes.fill_between(steps, low, high, color="#0072b2", alpha=0.2, lw=0, label="± 1 standard deviation over episodes")
    axes.plot(steps, mean, color="#0072b2", lw=2, label="evaluation (deterministic policy)")
    axes.set(xlabel="environment steps", ylabel="return per episode", title=title)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="0.9")
    axes.set_axisbelow(True)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.legend(frameon=False, loc="best", fontsize=9)
    figure.savefig(path)


def not_finite(metrics: dict[str, float]) -> str | None:
    """The name of a metric that is not finite, if any."""
    return next((name for name, value in metrics.items() if not math.isfinite(value)), None)


def _tag(name: str) -> str:
    """TensorBoard groups by the part before the slash."""
    group, found, rest = name.partition("_")
    return f"{group}/{rest}" if found and group in ("eval", "episode", "projection", "penalty") else f"train/{name}"
