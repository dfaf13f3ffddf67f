"""How a contestant looks and is called in a report, whatever the chart."""

from collections.abc import Sequence
from dataclasses import dataclass

from bisac.experiments.style import COLOURS, LABELS, LINE_STYLES, LineStyle

MORE_COLOURS = ("#332288", "#88ccee", "#44aa99", "#117733", "#ddcc77", "#cc6677", "#aa4499", "#661100", "#6699cc")
"""Tol's, for contestants that have no colour of their own."""


@dataclass(frozen=True)
class Look:
    """A contestant's label, colour and line."""

    label: str
    colour: str
    line: LineStyle

    @property
    def dash(self) -> str:
        """The line in SVG's words."""
        return "solid" if isinstance(self.line, str) else ",".join(f"{2 * part:g}px" for part in self.line[1])

    def faint(self, alpha: float) -> str:
        """The colour, let through to what lies under it."""
        red, green, blue = (int(self.colour[at : at + 2], 16) for at in (1, 3, 5))
        return f"rgba({red},{green},{blue},{alpha})"


def looks(names: Sequence[str]) -> dict[str, Look]:
    """The look of each; an unknown variant has the name of what it is a variant of, and a colour of its own."""
    more = iter(MORE_COLOURS * len(names))
    found = {}
    for name in names:
        base = max((known for known in LABELS if name == known or name.startswith(f"{known}-")), key=len, default=name)
        extra = name.removeprefix(base).replace("-", ", ")
        colour = COLOURS[name] if name in COLOURS else next(more)
        found[name] = Look(LABELS.get(base, base) + extra, colour, LINE_STYLES.get(base, "-"))
    return found
