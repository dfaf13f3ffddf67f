"""The charts of a search's page: what of its trials each shows, as traces and a layout for plotly.js."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from bisac.algos.search import Choice
from bisac.report.charts import Chart
from bisac.report.traces import GREY, axis, layout_of, rows_axis
from bisac.report.words import verbatim
from bisac.sweeps.contestants import as_typed
from bisac.sweeps.folders import Evaluations
from bisac.tuning.space import Space
from bisac.tuning.study import Trial

BLUE, ORANGE, FAINT = "#0072b2", "#d55e00", "rgba(95,99,104,0.35)"


def importance(shares: Mapping[str, float]) -> Chart:
    """Return the bars of how much each setting decides."""
    names = list(shares)
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": list(shares.values()),
        "y": list(map(verbatim, names)),
        "marker": {"color": BLUE},
        "hovertemplate": "%{y}: %{x:.2f}<extra></extra>",
    }
    layout = layout_of(70 + 26 * len(names), xaxis=axis("share", rangemode="tozero"), yaxis=rows_axis(names))
    return Chart("importance", "Importance of each setting", "complete trials only", [bars], layout)


def history(trials: Sequence[Trial], top: Trial) -> Chart:
    """Return the scores in the order of the trials, and the best so far."""
    scored = [trial for trial in trials if trial.score is not None]
    numbers, scores = [trial.number for trial in scored], [trial.score or 0.0 for trial in scored]
    points = _points(numbers, scored, top)
    line = {
        "x": numbers,
        "y": list(accumulate(scores, max)),
        "mode": "lines",
        "line": {"color": ORANGE, "width": 2, "shape": "hv"},
        "hovertemplate": "best so far %{y:,.1f}<extra></extra>",
    }
    layout = layout_of(340, xaxis=axis("trial", rangemode="tozero"), yaxis=axis("score"))
    return Chart("history", "Scores", "a point a complete trial; the line is the best so far", [line, points], layout)


def curves(trials: Sequence[Trial], ran: Mapping[int, Evaluations], top: Trial) -> Chart:
    """Return the learning curve of every trial, the best one's in front."""
    traces = []
    for trial in sorted(trials, key=lambda trial: trial.number == top.number):
        first = trial.number == top.number
        told, dash = ran[trial.number], "dot" if trial.state != "complete" else "solid"
        traces.append(
            {
                "x": told.steps.tolist(),
                "y": told.returns.tolist(),
                "mode": "lines",
                "line": {"color": ORANGE if first else FAINT, "width": 2.4 if first else 1, "dash": dash},
                "hovertemplate": f"trial {trial.number}<br>%{{x:,}} steps<br>%{{y:,.1f}}<extra></extra>",
            }
        )
    axes = {"xaxis": axis("environment steps", rangemode="tozero"), "yaxis": axis("return per episode")}
    note = "the best trial in colour; dotted: ended early, failed, or not over"
    return Chart("curves", "Learning curves", note, traces, layout_of(380, **axes))


def slices(space: Space, trials: Sequence[Trial], top: Trial) -> list[Chart]:
    """Return a chart for each setting: its values, and the scores of the trials that had them."""
    charts = []
    for index, (name, dimension) in enumerate(space.items()):
        scored = [trial for trial in trials if trial.score is not None and name in trial.values]
        values: list[Any] = [trial.values[name] for trial in scored]
        if isinstance(dimension, Choice):
            labels = [verbatim(as_typed(value)) for value in dimension.values]
            values = [verbatim(as_typed(value)) for value in values]
            across = axis("", type="category", categoryorder="array", categoryarray=labels)
        else:
            across = axis("", type="log" if dimension.log else "linear")
        layout = layout_of(260, xaxis=across, yaxis=axis("score"))
        charts.append(Chart(f"setting-{index}", name, str(dimension), [_points(values, scored, top)], layout))
    return charts


def _points(x: Sequence[Any], scored: Sequence[Trial], top: Trial) -> dict[str, Any]:
    leads = [trial.number == top.number for trial in scored]
    return {
        "x": list(x),
        "y": [trial.score for trial in scored],
        "mode": "markers",
        "marker": {
            "size": [12 if lead else 7 for lead in leads],
            "color": [ORANGE if lead else BLUE for lead in leads],
            "symbol": ["star" if lead else "circle" for lead in leads],
            "line": {"color": GREY, "width": 0.5},
        },
        "customdata": [trial.number for trial in scored],
        "hovertemplate": "trial %{customdata}<br>%{x}<br>%{y:,.1f}<extra></extra>",
    }
