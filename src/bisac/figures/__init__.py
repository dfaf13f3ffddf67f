"""The paper's figures, by the name users give them: one file each."""

from bisac.figures.base import Made, PaperFigure, write_figure
from bisac.figures.curves import Curves
from bisac.figures.gradient import Gradient
from bisac.figures.marginals import Marginals
from bisac.figures.projection import ProjectionFigure
from bisac.figures.vdna import VdnA

FIGURES: dict[str, type[PaperFigure]] = {
    "gradient": Gradient,
    "marginals": Marginals,
    "projection": ProjectionFigure,
    "vdna": VdnA,
    "curves": Curves,
}

__all__ = ["FIGURES", "Made", "PaperFigure", "write_figure"]
