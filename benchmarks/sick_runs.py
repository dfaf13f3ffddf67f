"""What sick and healthy runs look like: columns of progress.csv of three runs of results/sick-and-healthy."""

from pathlib import Path
from typing import Any

from bisac.plotting.style import drawing, rendered, thousands
from bisac.runs.folder import RunFolder
from bisac.runs.log import read_log

RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "healthy": ("healthy", {"color": "#009e73", "ls": "-"}),
    "rate": ("learning rates of 0.1", {"color": "#d55e00", "ls": (0, (4, 1.5))}),
    "temperature": ("temperature held at 20", {"color": "#0072b2", "ls": (0, (1, 1))}),
}
"""Folder, label and look of each run."""
PANELS = {
    "eval_return": ("eval_return", None, None),
    "entropy": ("entropy", -1.0, "target"),
    "critic_loss": ("critic_loss", None, None),
    "q": ("q", 0.0, "best possible without the entropy bonus"),
}
"""The columns, and a level that says what is right, with its name."""


def draw(folder: Path) -> bytes:
    """Return the picture: a panel a column, a line a run, as PNG."""
    with drawing(7.4, 4.6) as figure:
        panels = figure.subplots(2, 2).ravel()
        for axes, (column, (title, level, name)) in zip(panels, PANELS.items(), strict=True):
            for run, (label, look) in RUNS.items():
                rows = [row for row in read_log(RunFolder(folder / run)) if row[column] is not None]
                axes.plot([row["step"] for row in rows], [row[column] for row in rows], label=label, lw=1.6, **look)
            if level is not None:
                axes.axhline(level, color="0.5", lw=0.8)
                axes.annotate(
                    name, (0.98, level), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=7
                )
            axes.set(title=title, xlabel="environment steps", xlim=(0, None))
            axes.xaxis.set_major_formatter(thousands)
        panels[2].set_yscale("log")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return rendered(figure, ["png"])["png"]
