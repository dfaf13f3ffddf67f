"""The paper's figures, by the name users give them: one file each."""

from bisac.experiments.figures.base import Made, PaperFigure, write_figure
from bisac.experiments.figures.curves import Curves
from bisac.experiments.figures.gradient import Gradient
from bisac.experiments.figures.marginals import Marginals
from bisac.experiments.figures.projection import ProjectionFigure
from bisac.experiments.figures.vdna import VdnA

FIGURES: dict[str, type[PaperFigure]] = {
    "gradient": Gradient,
    "marginals": Marginals,
    "projection": ProjectionFigure,
    "vdna": VdnA,
    "curves": Curves,
}

__all__ = ["FIGURES", "Made", "PaperFigure", "write_figure"]
