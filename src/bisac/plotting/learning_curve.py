"""The learning curve that every run leaves in its folder."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from bisac.storage import write_atomic


def draw_learning_curve(rows: Sequence[Mapping[str, float | None]], path: Path, title: str) -> None:
    """Draw a run's learning curve: the evaluation return with its spread, and the training episodes' return.

    `rows` are those of its progress.csv.
    """
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
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    write_atomic(path, picture.getvalue())
