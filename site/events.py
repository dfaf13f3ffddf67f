"""The page of event types, from the classes themselves."""

import inspect
from typing import Any, get_args

from tables import described

from bisac.runs.events import Event, Outcome
from bisac.sweeps.events import SweepEvent


def events() -> str:
    """Return the page: what runs tell, then what sweeps tell."""
    parts = [
        "# Event types",
        "What a run tells while it goes, in the order in which things happen. Whatever is told has been written "
        "before. [Python](../python.md#a-run-is-a-loop) shows a loop over them.",
        "## Of runs",
        *(part for kind in get_args(Event) for part in _section(f"bisac.{kind.__name__}", kind)),
        "`Evaluated` has `success_rate` too, the share of episodes that succeeded.",
        *_section("Outcome", Outcome),
        "## Of sweeps",
        "`bisac.sweeps.execute` yields these; the display of `bisac sweep` is made of them.",
        *(part for kind in get_args(SweepEvent) for part in _section(kind.__name__, kind)),
    ]
    return "\n\n".join(parts) + "\n"


def _section(title: str, kind: type[Any]) -> list[str]:
    return [f"### {title}", inspect.cleandoc(kind.__doc__ or ""), described(kind)]
