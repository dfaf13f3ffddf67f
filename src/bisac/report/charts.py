"""The page's charts, one function each: what of an analysis each shows, as traces and a layout for plotly.js."""

import math
from dataclasses import dataclass
from typing import Any

from bisac.report.analysis import Analysis
from bisac.report.traces import (
    axis,
    band_traces,
    bars_trace,
    interval_trace,
    layout_of,
    rows_axis,
    unfinished_trace,
    upright,
)
from bisac.report.words import counted, verbatim


@dataclass(frozen=True)
class Chart:
    """A chart of the page."""

    name: str
    """Its id in the page."""
    title: str
    """The heading above it."""
    note: str
    """What it rests on, in a line below the heading."""
    traces: list[dict[str, Any]]
    """What it draws, in plotly.js's words."""
    layout: dict[str, Any]
    """Its axes and size, in plotly.js's words."""
    by_time: list[list[float]] | None = None
    """Each trace's x with wall-clock time in the place of steps, where there is a choice."""


def learning_curves(analysis: Analysis) -> list[Chart]:
    """Return a chart of the learning curves for each task."""
    shown, charts = analysis.looks, []
    for index, env in enumerate(analysis.data.envs):
        traces, hours = [], []
        for curve in (c for c in analysis.curves if c.env == env):
            for trace in band_traces(
                curve.contestant, shown[curve.contestant], curve.steps, curve.band, "%{x:,} steps"
            ):
                traces.append(trace)
                hours.append((curve.seconds / 3600).tolist())
        for run in (r for r in analysis.data.incomplete if r.env == env and len(r.evaluations)):
            ran = run.evaluations
            traces.append(unfinished_trace(run.contestant, shown[run.contestant], run.seed, ran.steps, ran.returns))
            hours.append((ran.seconds / 3600).tolist())
        seeds = [curve.band.seeds for curve in analysis.curves if curve.env == env]
        missing = sum(run.env == env for run in analysis.data.incomplete)
        note = f"{counted(seeds)} each" + (f"; dotted, not counted: {missing} incomplete" if missing else "")
        axes = {"xaxis": axis("environment steps", rangemode="tozero"), "yaxis": axis("return per episode")}
        charts.append(Chart(f"curve-{index}", env, note, traces, layout_of(340, **axes), hours))
    return charts


def aggregates(analysis: Analysis) -> Chart:
    """Return the chart of the interquartile mean, median and mean of normalised scores."""
    shown, traces = analysis.looks, []
    kinds = ("IQM", "Median", "Mean")
    for aggregate in analysis.aggregates:
        for column, estimate in enumerate((aggregate.iqm, aggregate.median, aggregate.mean)):
            trace = interval_trace(aggregate.contestant, shown[aggregate.contestant], estimate, kinds[column])
            traces.append(trace | {"xaxis": f"x{column + 1}", "yaxis": "y"})
    axes: dict[str, Any] = {"yaxis": rows_axis([shown[a.contestant].label for a in analysis.aggregates])}
    for column, kind in enumerate(kinds):
        low = column / 3 + (0.03 if column else 0.0)
        axes[f"xaxis{column + 1}"] = axis(f"{kind} of normalised scores", domain=[low, (column + 1) / 3])
    height = 110 + 34 * len(analysis.aggregates)
    note = f"{counted([a.seeds for a in analysis.aggregates])} each, over {', '.join(analysis.aggregated)}"
    layout = layout_of(height, **axes)
    return Chart("aggregates", "Aggregate scores", note, traces, layout)


def improvement(analysis: Analysis) -> Chart:
    """Return the chart of the probability of improvement over the reference."""
    shown = analysis.looks
    compared = [(a.contestant, a.improvement) for a in analysis.aggregates if a.improvement]
    traces = [interval_trace(name, shown[name], estimate, "P") for name, estimate in compared]
    layout = layout_of(
        360,
        xaxis=axis(f"P(better than {analysis.reference_label})", range=[-0.02, 1.02]),
        yaxis=rows_axis([shown[name].label for name, _ in compared]),
        shapes=[upright(0.5)],
    )
    note = f"{counted([estimate.seeds for _, estimate in compared])} each; an interval across 0.5 establishes nothing"
    return Chart("improvement", "Probability of improvement", note, traces, layout)


def profiles(analysis: Analysis) -> Chart:
    """Return the chart of the performance profiles."""
    shown, traces = analysis.looks, []
    for aggregate in analysis.aggregates:
        look = shown[aggregate.contestant]
        traces += band_traces(aggregate.contestant, look, analysis.taus, aggregate.profile, "score %{x:.2f}", ".2f")
    layout = layout_of(
        360,
        xaxis=axis("normalised score τ"),
        yaxis=axis("fraction of runs with score > τ", range=[-0.02, 1.02]),
    )
    note = f"{counted([a.seeds for a in analysis.aggregates])} each, over {', '.join(analysis.aggregated)}"
    return Chart("profiles", "Performance profiles", note, traces, layout)


def efficiency(analysis: Analysis) -> Chart:
    """Return the chart of the steps until the reference's final score."""
    shown, traces = analysis.looks, []
    budget = max(run.budget for run in analysis.data.runs)
    for name in analysis.names:
        results = [r for r in analysis.results if r.contestant == name and r.reached]
        where = f"<b>{verbatim(shown[name].label)}</b><br>%{{x}}: %{{customdata}}"
        never = [not math.isfinite(result.median_reached) for result in results]
        reached = [sum(map(math.isfinite, result.reached)) for result in results]
        traces.append(
            bars_trace(name, shown[name], [r.env for r in results])
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
    label = analysis.reference_label
    layout = layout_of(
        360, barmode="group", xaxis=axis("", type="category"), yaxis=axis(f"steps to {label}'s final score")
    )
    note = "median over seeds; the figures count the seeds that reached it; hatched: half or more did not"
    return Chart("efficiency", "Sample efficiency", note, traces, layout)


def cost(analysis: Analysis) -> Chart:
    """Return the chart of the wall-clock time of a run."""
    shown, traces = analysis.looks, []
    for name in analysis.names:
        results = [r for r in analysis.results if r.contestant == name]
        reference = [analysis.result(r.env, analysis.reference) for r in results]
        ratios = [
            r.median_seconds / other.median_seconds if other else None
            for r, other in zip(results, reference, strict=True)
        ]
        traces.append(
            bars_trace(name, shown[name], [r.env for r in results])
            | {
                "y": [r.median_seconds / 60 for r in results],
                "text": [f"{ratio:.1f}x" if ratio else "" for ratio in ratios],
                "hovertemplate": f"<b>{verbatim(shown[name].label)}</b><br>"
                "%{x}: %{y:,.1f} min %{text}<extra></extra>",
            }
        )
    layout = layout_of(
        360, barmode="group", xaxis=axis("", type="category"), yaxis=axis("minutes a run, with its evaluations")
    )
    note = f"median over {counted([r.seeds for r in analysis.results])}; x is times {analysis.reference_label}"
    return Chart("cost", "Wall-clock cost", note, traces, layout)
