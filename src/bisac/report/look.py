"""How a contestant looks and is called in a report, whatever the chart."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from bisac.plotting.style import COLOURS, LABELS, LINE_STYLES, LineStyle
from bisac.sweeps.plan import Contestant

MORE_COLOURS = ("#332288", "#88ccee", "#44aa99", "#117733", "#ddcc77", "#cc6677", "#aa4499", "#661100", "#6699cc")
"""Tol's, for contestants that have no colour of their own."""
MORE_LINES: tuple[LineStyle, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (6, 1.5, 1, 1.5)))
"""Where those are used up, the line tells."""


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


def looks(contestants: Sequence[Contestant]) -> dict[str, Look]:
    """The look of each, by name; an unknown variant is called after what it is a variant of, with its settings."""
    more = iter(list(product(MORE_LINES, MORE_COLOURS)) * len(contestants))
    found = {}
    for contestant in contestants:
        # As many of its first settings as there is a label for.
        known = (len(contestant.settings) - left for left in range(len(contestant.settings) + 1))
        count = next((n for n in known if _first(contestant, n).name in LABELS), 0)
        base = _first(contestant, count).name
        label = ", ".join([LABELS.get(base, base), *contestant.words[count:]])
        if base == contestant.name and base in COLOURS:
            found[contestant.name] = Look(label, COLOURS[base], LINE_STYLES[base])
        else:
            line, colour = next(more)
            found[contestant.name] = Look(label, colour, line)
    return found


def _first(contestant: Contestant, count: int) -> Contestant:
    """The contestant with its first settings alone."""
    return replace(contestant, settings=contestant.settings[:count])
