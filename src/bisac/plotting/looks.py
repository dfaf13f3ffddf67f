"""How a contestant looks and is called, whatever the picture: its label, colour and line.

A contestant is known here by its words alone, the algorithm's name and then its settings: ("bisac", "kl").
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from bisac.plotting.style import COLOURS, LABELS, LINE_STYLES, LineStyle

MORE_COLOURS = ("#332288", "#88ccee", "#44aa99", "#117733", "#ddcc77", "#cc6677", "#aa4499", "#661100", "#6699cc")
"""Paul Tol's colours, for contestants that have no colour of their own."""
MORE_LINES: tuple[LineStyle, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (6, 1.5, 1, 1.5)))
"""Line styles that tell contestants apart where those colours are used up."""


@dataclass(frozen=True)
class Look:
    """A contestant's label, colour and line."""

    label: str
    """The name that legends and tables have for it."""
    colour: str
    """The colour of its lines, as #rrggbb."""
    line: LineStyle
    """Its line style, in matplotlib's words."""

    @property
    def dash(self) -> str:
        """The line style in SVG's words."""
        return "solid" if isinstance(self.line, str) else ",".join(f"{2 * part:g}px" for part in self.line[1])

    def faint(self, alpha: float) -> str:
        """Return the colour in CSS's words, so far transparent."""
        red, green, blue = (int(self.colour[at : at + 2], 16) for at in (1, 3, 5))
        return f"rgba({red},{green},{blue},{alpha})"


def assign_looks(contestants: Iterable[tuple[str, ...]]) -> dict[str, Look]:
    """Return the look of each contestant, by its words joined with hyphens.

    A variant that has no label of its own is called after what it is a variant of, with its other settings.
    """
    contestants = list(contestants)
    more = iter(list(product(MORE_LINES, MORE_COLOURS)) * len(contestants))
    found = {}
    for words in contestants:
        name = "-".join(words)
        # As many of its first settings as there is a label for.
        count = next((n for n in range(len(words), 0, -1) if "-".join(words[:n]) in LABELS), 1)
        base = "-".join(words[:count])
        label = ", ".join([LABELS.get(base, base), *words[count:]])
        if base == name and base in COLOURS:
            found[name] = Look(label, COLOURS[base], LINE_STYLES[base])
        else:
            line, colour = next(more)
            found[name] = Look(label, colour, line)
    return found
