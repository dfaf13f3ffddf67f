"""The paper's figures, by the name users give them: one file each."""

from bisac.experiments.figures.base import Made, PaperFigure, write_figure
from bisac.experiments.figures.curves import Curves
from bisac.experiments.figures.gradient import Gradient

FIGURES: dict[str, type[PaperFigure]] = {
    "gradient": Gradient,
    "curves": Curves,
}

__all__ = ["FIGURES", "Made", "PaperFigure", "write_figure"]
