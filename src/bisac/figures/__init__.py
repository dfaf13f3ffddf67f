"""The paper's figures, by the name that users give them: one file each, beside it what it measures where that is long.

A figure knows neither the command line nor where its files go; it shares colours and statistics with the report.
"""

from bisac.figures.base import Made, PaperFigure, write_figure
from bisac.figures.curves import CurvesFigure
from bisac.figures.gradient import GradientFigure
from bisac.figures.marginals import MarginalsFigure
from bisac.figures.modes import ModesFigure
from bisac.figures.projection import ProjectionFigure
from bisac.figures.vdna import VdnAFigure

FIGURES: dict[str, type[PaperFigure]] = {
    "gradient": GradientFigure,
    "marginals": MarginalsFigure,
    "projection": ProjectionFigure,
    "vdna": VdnAFigure,
    "modes": ModesFigure,
    "curves": CurvesFigure,
}
"""Every figure's class, by the name of the figure."""

__all__ = ["FIGURES", "Made", "PaperFigure", "write_figure"]
