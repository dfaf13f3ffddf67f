"""How every picture looks: one colour, one line style and one label per algorithm, and matplotlib's settings.

Colours are Okabe and Ito's and Tol's, made for the colour-blind; line styles tell the algorithms apart in grey. This
module must not know what a picture shows. Matplotlib is slow to import and is loaded only when something is drawn.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LineStyle = str | tuple[int, tuple[float, ...]]
"""A line style in matplotlib's words: a name, or an offset and the lengths of dashes and gaps."""

COLOURS: dict[str, str] = {
    "bisac": "#0072b2",
    "bisac-correction": "#56b4e9",
    "sac": "#d55e00",
    "sac-none": "#7f7f7f",
    "sac-fast": "#b2182b",
    "sac-vdn-a": "#e69f00",
    "forward-sac": "#009e73",
    "forward-sac-actor": "#cc79a7",
    "ddpg": "#000000",
    "td3": "#888888",
    "mpo": "#8c510a",
    "ppo": "#882255",
    "a2c": "#999933",
}
"""The colour of each algorithm and of its variants that have one of their own."""

LINE_STYLES: dict[str, LineStyle] = {
    "bisac": "-",
    "bisac-correction": (0, (8, 1.5)),
    "sac": (0, (4, 1.5)),
    "sac-none": (0, (1.5, 1.5)),
    "sac-fast": (0, (5, 1, 2, 1)),
    "sac-vdn-a": (0, (2, 1)),
    "forward-sac": (0, (6, 1.5, 1, 1.5)),
    "forward-sac-actor": (0, (3, 1, 1, 1)),
    "ddpg": (0, (1, 1)),
    "td3": (0, (1, 2.5)),
    "mpo": (0, (6, 1, 1, 1, 1, 1, 1, 1)),
    "ppo": (0, (4, 1, 1, 1, 1, 1)),
    "a2c": (0, (8, 2, 2, 2)),
}
"""The line style of each of them."""

LABELS: dict[str, str] = {
    "bisac": "Bidirectional SAC",
    "bisac-correction": "Bidirectional SAC, correction",
    "sac": "SAC",
    "sac-none": "SAC, classic",
    "sac-fast": "SAC, fast preset",
    "sac-vdn-a": "SAC, VDN-a critic",
    "forward-sac": "Forward SAC",
    "forward-sac-actor": "Forward SAC, actor",
    "ddpg": "DDPG",
    "td3": "TD3",
    "mpo": "MPO",
    "ppo": "PPO",
    "a2c": "A2C",
}
"""What each of them is called in legends and tables."""

TRUTH = "#000000"
"""The colour of what is exact, where it is drawn beside an algorithm's."""

RC: dict[Any, Any] = {
    "figure.dpi": 140,
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.titleweight": "regular",
    "axes.labelsize": 8,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.formatter.use_mathtext": True,
    "grid.color": "0.92",
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "legend.handlelength": 2.8,
    "pdf.fonttype": 42,  # TrueType, so that text in the PDF stays text
}
"""Matplotlib's settings for everything that is drawn."""


@contextmanager
def drawing(width: float, height: float) -> Iterator["Figure"]:
    """Give a figure of that size in inches, with the settings above while it is drawn and saved."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(RC):
        figure = Figure(figsize=(width, height))
        FigureCanvasAgg(figure)
        yield figure


def beside(panels: int) -> int:
    """Return how many panels stand beside each other: three at most, and four as two rows of two."""
    return 2 if panels == 4 else min(3, panels)


def rendered(figure: "Figure", endings: Sequence[str] = ("png", "pdf")) -> dict[str, bytes]:
    """Return the figure as contents of files, by their ending."""
    files = {}
    for ending in endings:
        content = io.BytesIO()
        # No date in it: equal numbers give equal files.
        options: dict[str, Any] = (
            {"metadata": {"CreationDate": None}} if ending == "pdf" else {"pil_kwargs": {"optimize": True}}
        )
        figure.savefig(content, format=ending, **options)
        files[ending] = content.getvalue()
    return files


def literal(text: str) -> str:
    """Return text as matplotlib shows it to the letter: between dollars it would read mathematics, or fail to."""
    return text.replace("$", r"\$")


def thousands(value: float, _: float | None) -> str:
    """Return a number of steps as an axis writes it: 20k, 1.5M."""
    return f"{value / 1e6:g}M" if abs(value) >= 1e6 else f"{value / 1e3:g}k" if abs(value) >= 1e3 else f"{value:g}"
