"""Building blocks of the page's charts: plotly.js's traces, axes and layouts, as plain dictionaries.

Each trace names the contestant that it shows (`meta`), so that the page can hide it. It must not know an analysis.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from bisac.plotting.looks import Look
from bisac.plotting.statistics import Band, Estimate
from bisac.report.words import plural, verbatim

GREY = "#5f6368"
"""The colour of words beside the charts."""
LAYOUT: dict[str, Any] = {
    "font": {"family": "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif", "size": 12.5},
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
    "showlegend": False,
    "hovermode": "closest",
    "hoverlabel": {"align": "left", "namelength": -1},
    "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "#c4c8cc", "activecolor": "#5f6368"},
}
"""What the layouts of all charts have in common."""
AXIS: dict[str, Any] = {
    "gridcolor": "#ececec",
    "zerolinecolor": "#d5d5d5",
    "linecolor": "#bdbdbd",
    "ticks": "outside",
    "tickcolor": "#bdbdbd",
    "ticklen": 4,
    "automargin": True,
    "title": {"font": {"size": 12.5, "color": GREY}, "standoff": 8},
}
"""What all axes have in common."""


def band_traces(
    name: str, look: Look, x: Float[np.ndarray, "point"], band: Band, where: str, digits: str = ",.1f"
) -> list[dict[str, Any]]:
    """Return the traces of a curve: its line, and under it its interval if there is one."""
    xs, seeds = x.tolist(), plural("seed", band.seeds)
    traces: list[dict[str, Any]] = []
    interval = "no interval: one seed"
    custom = None
    if band.interval:
        low, high = (bound.tolist() for bound in band.interval)
        edge = {"meta": name, "x": xs, "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
        traces = [edge | {"y": low}, edge | {"y": high, "fill": "tonexty", "fillcolor": look.faint(0.16)}]
        custom = list(zip(low, high, strict=True))
        interval = f"95%: %{{customdata[0]:{digits}}} to %{{customdata[1]:{digits}}}"
    label = verbatim(look.label)
    line = {
        "meta": name,
        "name": label,
        "x": xs,
        "y": band.values.tolist(),
        "mode": "lines",
        "line": {"color": look.colour, "width": 2.2, "dash": look.dash},
        "customdata": custom,
        "hovertemplate": f"<b>{label}</b><br>{where}<br>%{{y:{digits}}}<br>{interval}, {seeds}<extra></extra>",
    }
    return [*traces, line]


def unfinished_trace(
    name: str, look: Look, seed: int, x: Float[np.ndarray, "time"], y: Float[np.ndarray, "time"]
) -> dict[str, Any]:
    """Return the dotted trace of an incomplete run, with a cross where it ends."""
    label = verbatim(look.label)
    return {
        "meta": name,
        "name": f"{label}, seed {seed}",
        "x": x.tolist(),
        "y": y.tolist(),
        "mode": "lines+markers",
        "line": {"color": look.faint(0.6), "width": 1, "dash": "dot"},
        "marker": {"symbol": "x", "size": [0] * (len(x) - 1) + [7], "color": look.colour},
        "hovertemplate": f"<b>{label}</b>, seed {seed}: incomplete<br>%{{x:,}} steps<br>%{{y:,.1f}}<extra></extra>",
    }


def interval_trace(name: str, look: Look, estimate: Estimate, what: str) -> dict[str, Any]:
    """Return the trace of a number with its interval, in a row of its own."""
    label = verbatim(look.label)
    trace: dict[str, Any] = {
        "meta": name,
        "name": label,
        "x": [estimate.value],
        "y": [label],
        "mode": "markers",
        "marker": {"size": 10, "color": look.colour, "symbol": "diamond" if estimate.interval else "circle-open"},
    }
    interval = "no interval: one seed"
    if estimate.interval:
        low, high = estimate.interval
        trace["error_x"] = {
            "type": "data",
            "symmetric": False,
            "array": [high - estimate.value],
            "arrayminus": [estimate.value - low],
            "color": look.colour,
            "thickness": 2.5,
            "width": 5,
        }
        interval = f"95%: {low:.2f} to {high:.2f}"
    seeds = plural("seed", estimate.seeds)
    text = f"<b>{label}</b><br>{what} {estimate.value:.2f}<br>{interval}, {seeds}<extra></extra>"
    return trace | {"hovertemplate": text}


def bars_trace(name: str, look: Look, tasks: Sequence[str]) -> dict[str, Any]:
    """Return the trace of a contestant's bars, one for each task; their heights are left to add."""
    return {
        "meta": name,
        "name": verbatim(look.label),
        "type": "bar",
        "x": list(map(verbatim, tasks)),
        "marker": {"color": look.colour},
        "textposition": "outside",
        "textfont": {"size": 11, "color": GREY},
        "cliponaxis": False,
    }


def rows_axis(labels: Sequence[str]) -> dict[str, Any]:
    """Return an axis on which labels stand from top to bottom."""
    rows = list(map(verbatim, reversed(labels)))
    return axis("", type="category", categoryorder="array", categoryarray=rows, showgrid=False, ticks="") | {
        "range": [-0.6, len(labels) - 0.4]
    }


def upright(x: float) -> dict[str, Any]:
    """Return the shape of a dashed upright line."""
    return {
        "type": "line",
        "x0": x,
        "x1": x,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"color": "#9e9e9e", "dash": "dash", "width": 1},
    }


def axis(title: str, **more: Any) -> dict[str, Any]:
    """Return an axis with a title, which may be empty."""
    return AXIS | {"title": AXIS["title"] | {"text": verbatim(title)}} | more


def layout_of(height: int, **more: Any) -> dict[str, Any]:
    """Return a chart's layout with the given axes and whatever else it needs."""
    return LAYOUT | {"height": height, "margin": {"l": 64, "r": 16, "t": 14, "b": 50}} | more
