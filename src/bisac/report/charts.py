"""The page's charts, as what plotly.js is given: traces and a layout. Each trace names the contestant it shows."""

import math
from dataclasses import dataclass
from typing import Any

from bisac.report.analysis import Analysis
from bisac.report.look import Look, looks
from bisac.report.statistics import Band, Estimate

GREY = "#5f6368"
LAYOUT: dict[str, Any] = {
    "font": {"family": "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif", "size": 12.5},
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
    "showlegend": False,
    "hovermode": "closest",
    "hoverlabel": {"align": "left", "namelength": -1},
    "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "#c4c8cc", "activecolor": "#5f6368"},
}
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


@dataclass(frozen=True)
class Chart:
    """A chart of the page."""

    name: str
    """Its id in the page."""
    title: str
    note: str
    """What it rests on."""
    traces: list[dict[str, Any]]
    layout: dict[str, Any]
    by_time: list[list[float]] | None = None
    """Each trace's x with wall-clock time in the place of steps, where there is a choice."""


def learning_curves(analysis: Analysis) -> list[Chart]:
    """A chart for each task."""
    shown, charts = looks(analysis.data.contestants), []
    for index, env in enumerate(analysis.data.envs):
        traces, hours = [], []
        for curve in (c for c in analysis.curves if c.env == env):
            for trace in _band_traces(
                curve.contestant, shown[curve.contestant], curve.steps, curve.band, "%{x:,} steps"
            ):
                traces.append(trace)
                hours.append((curve.seconds / 3600).tolist())
        for run in (r for r in analysis.data.incomplete if r.env == env and len(r.steps)):
            traces.append(_unfinished(run.contestant, shown[run.contestant], run.seed, run.steps, run.returns))
            hours.append((run.seconds / 3600).tolist())
        seeds = [curve.band.seeds for curve in analysis.curves if curve.env == env]
        missing = sum(run.env == env for run in analysis.data.incomplete)
        note = f"{_seeds(seeds)} each" + (f"; dotted, not counted: {missing} incomplete" if missing else "")
        axes = {"xaxis": _axis("environment steps", rangemode="tozero"), "yaxis": _axis("return per episode")}
        charts.append(Chart(f"curve-{index}", env, note, traces, _layout(340, **axes), hours))
    return charts


def aggregates(analysis: Analysis) -> Chart:
    """Interquartile mean, median and mean of normalised scores."""
    shown, traces = looks(analysis.data.contestants), []
    kinds = ("IQM", "Median", "Mean")
    for aggregate in analysis.aggregates:
        for column, estimate in enumerate((aggregate.iqm, aggregate.median, aggregate.mean)):
            trace = _interval(aggregate.contestant, shown[aggregate.contestant], estimate, kinds[column])
            traces.append(trace | {"xaxis": f"x{column + 1}", "yaxis": "y"})
    axes: dict[str, Any] = {"yaxis": _rows(analysis, [a.contestant for a in analysis.aggregates])}
    for column, kind in enumerate(kinds):
        low = column / 3 + (0.03 if column else 0.0)
        axes[f"xaxis{column + 1}"] = _axis(f"{kind} of normalised scores", domain=[low, (column + 1) / 3])
    height = 110 + 34 * len(analysis.aggregates)
    note = f"{_seeds([a.seeds for a in analysis.aggregates])} each, over {', '.join(analysis.aggregated)}"
    layout = _layout(height, **axes)
    return Chart("aggregates", "Aggregate scores", note, traces, layout)


def improvement(analysis: Analysis) -> Chart:
    """The probability of improvement over the reference."""
    shown = looks(analysis.data.contestants)
    compared = [(a.contestant, a.improvement) for a in analysis.aggregates if a.improvement]
    traces = [_interval(name, shown[name], estimate, "P") for name, estimate in compared]
    layout = _layout(
        360,
        xaxis=_axis(f"P(better than {shown[analysis.reference].label})", range=[-0.02, 1.02]),
        yaxis=_rows(analysis, [name for name, _ in compared]),
        shapes=[_upright(0.5)],
    )
    note = f"{_seeds([estimate.seeds for _, estimate in compared])} each; an interval across 0.5 establishes nothing"
    return Chart("improvement", "Probability of improvement", note, traces, layout)


def profiles(analysis: Analysis) -> Chart:
    """Performance profiles."""
    shown, traces = looks(analysis.data.contestants), []
    for aggregate in analysis.aggregates:
        look = shown[aggregate.contestant]
        traces += _band_traces(aggregate.contestant, look, analysis.taus, aggregate.profile, "score %{x:.2f}", ".2f")
    layout = _layout(
        360,
        xaxis=_axis("normalised score τ"),
        yaxis=_axis("fraction of runs with score > τ", range=[-0.02, 1.02]),
    )
    note = f"{_seeds([a.seeds for a in analysis.aggregates])} each, over {', '.join(analysis.aggregated)}"
    return Chart("profiles", "Performance profiles", note, traces, layout)


def efficiency(analysis: Analysis) -> Chart:
    """Steps until the reference's final score."""
    shown, traces = looks(analysis.data.contestants), []
    budget = max(curve.budget for curve in analysis.data.curves)
    for name in analysis.names:
        results = [r for r in analysis.results if r.contestant == name and r.reached]
        where = f"<b>{shown[name].label}</b><br>%{{x}}: %{{customdata}}"
        never = [not math.isfinite(result.median_reached) for result in results]
        reached = [sum(map(math.isfinite, result.reached)) for result in results]
        traces.append(
            _bars(name, shown[name], [r.env for r in results])
            | {
                "y": [budget if no else r.median_reached for no, r in zip(never, results, strict=True)],
                "text": [f"{count}/{r.seeds}" for count, r in zip(reached, results, strict=True)],
                "customdata": [
                    "not reached" if no else f"{r.median_reached:,.0f} steps"
                    for no, r in zip(never, results, strict=True)
                ],
                "hovertemplate": f"{where}<br>reached by %{{text}} seeds<extra></extra>",
            }
        )
        traces[-1]["marker"]["pattern"] = {
            "shape": ["/" if no else "" for no in never],
            "fillmode": "overlay",
            "fgcolor": "white",
            "size": 7,
            "solidity": 0.5,
        }
    label = shown[analysis.reference].label
    layout = _layout(360, barmode="group", xaxis=_axis(None), yaxis=_axis(f"steps to {label}'s final score"))
    note = "median over seeds; the figures count the seeds that reached it; hatched: half or more did not"
    return Chart("efficiency", "Sample efficiency", note, traces, layout)


def cost(analysis: Analysis) -> Chart:
    """Wall-clock time of a run."""
    shown, traces = looks(analysis.data.contestants), []
    for name in analysis.names:
        results = [r for r in analysis.results if r.contestant == name]
        reference = [analysis.result(r.env, analysis.reference) for r in results]
        ratios = [
            r.median_seconds / other.median_seconds if other else None
            for r, other in zip(results, reference, strict=True)
        ]
        traces.append(
            _bars(name, shown[name], [r.env for r in results])
            | {
                "y": [r.median_seconds / 60 for r in results],
                "text": [f"{ratio:.1f}x" if ratio else "" for ratio in ratios],
                "hovertemplate": f"<b>{shown[name].label}</b><br>%{{x}}: %{{y:,.1f}} min %{{text}}<extra></extra>",
            }
        )
    layout = _layout(360, barmode="group", xaxis=_axis(None), yaxis=_axis("minutes a run, with its evaluations"))
    note = f"median over {_seeds([r.seeds for r in analysis.results])}; x is times {shown[analysis.reference].label}"
    return Chart("cost", "Wall-clock cost", note, traces, layout)


def _band_traces(name: str, look: Look, x: Any, band: Band, where: str, digits: str = ",.1f") -> list[dict[str, Any]]:
    """The line, and under it its interval if there is one."""
    xs, seeds = x.tolist(), f"{band.seeds} seed{'s' if band.seeds != 1 else ''}"
    traces: list[dict[str, Any]] = []
    interval = "no interval: one seed"
    custom = None
    if band.interval:
        low, high = (bound.tolist() for bound in band.interval)
        edge = {"meta": name, "x": xs, "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
        traces = [edge | {"y": low}, edge | {"y": high, "fill": "tonexty", "fillcolor": look.faint(0.16)}]
        custom = list(zip(low, high, strict=True))
        interval = f"95%: %{{customdata[0]:{digits}}} to %{{customdata[1]:{digits}}}"
    line = {
        "meta": name,
        "name": look.label,
        "x": xs,
        "y": band.values.tolist(),
        "mode": "lines",
        "line": {"color": look.colour, "width": 2.2, "dash": look.dash},
        "customdata": custom,
        "hovertemplate": f"<b>{look.label}</b><br>{where}<br>%{{y:{digits}}}<br>{interval}, {seeds}<extra></extra>",
    }
    return [*traces, line]


def _unfinished(name: str, look: Look, seed: int, x: Any, y: Any) -> dict[str, Any]:
    who = f"<b>{look.label}</b>, seed {seed}: incomplete"
    return {
        "meta": name,
        "name": f"{look.label}, seed {seed}",
        "x": x.tolist(),
        "y": y.tolist(),
        "mode": "lines+markers",
        "line": {"color": look.faint(0.6), "width": 1, "dash": "dot"},
        "marker": {"symbol": "x", "size": [0] * (len(x) - 1) + [7], "color": look.colour},
        "hovertemplate": f"{who}<br>%{{x:,}} steps<br>%{{y:,.1f}}<extra></extra>",
    }


def _interval(name: str, look: Look, estimate: Estimate, what: str) -> dict[str, Any]:
    """A point with its interval, in a row of its own."""
    trace: dict[str, Any] = {
        "meta": name,
        "name": look.label,
        "x": [estimate.value],
        "y": [look.label],
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
    text = f"<b>{look.label}</b><br>{what} {estimate.value:.2f}<br>{interval}, {estimate.seeds} seeds<extra></extra>"
    return trace | {"hovertemplate": text}


def _bars(name: str, look: Look, tasks: list[str]) -> dict[str, Any]:
    return {
        "meta": name,
        "name": look.label,
        "type": "bar",
        "x": tasks,
        "marker": {"color": look.colour},
        "textposition": "outside",
        "textfont": {"size": 11, "color": GREY},
        "cliponaxis": False,
    }


def _rows(analysis: Analysis, names: list[str]) -> dict[str, Any]:
    """Contestants from top to bottom."""
    shown = looks(analysis.data.contestants)
    labels = [shown[name].label for name in names]
    return _axis(None, type="category", categoryorder="array", categoryarray=labels[::-1], showgrid=False, ticks="") | {
        "range": [-0.6, len(labels) - 0.4]
    }


def _upright(x: float) -> dict[str, Any]:
    return {
        "type": "line",
        "x0": x,
        "x1": x,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"color": "#9e9e9e", "dash": "dash", "width": 1},
    }


def _axis(title: str | None, **more: Any) -> dict[str, Any]:
    return AXIS | {"title": AXIS["title"] | {"text": title or ""}} | more


def _layout(height: int, **more: Any) -> dict[str, Any]:
    return LAYOUT | {"height": height, "margin": {"l": 64, "r": 16, "t": 14, "b": 50}} | more


def _seeds(counts: list[int]) -> str:
    if not counts:
        return "no seeds"
    low, high = min(counts), max(counts)
    return f"{low} seed{'s' if low != 1 else ''}" if low == high else f"{low} to {high} seeds"
