"""The report's figures for papers: the same numbers as the page's charts, drawn by matplotlib."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from bisac.plotting.looks import Look
from bisac.plotting.statistics import Band, Estimate
from bisac.plotting.style import beside, drawing, literal, rendered, thousands
from bisac.report.analysis import Analysis, TaskResult
from bisac.report.words import counted, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEGEND_ROW = 0.16
"""The height of a row of the legend, in inches."""


def draw_figures(analysis: Analysis) -> dict[str, dict[str, bytes]]:
    """Draw every figure that the analysis has numbers for; returns a PNG and a PDF of each, by its name."""
    figures: dict[str, Callable[[Analysis], dict[str, bytes]]] = {"curves": _curves}
    if analysis.aggregates:
        figures |= {"aggregates": _aggregates, "profiles": _profiles}
        if any(aggregate.improvement for aggregate in analysis.aggregates):
            figures["improvement"] = _improvement
    if analysis.results:
        figures |= {"efficiency": _efficiency, "cost": _cost}
    return {name: draw(analysis) for name, draw in figures.items()}


def _curves(analysis: Analysis) -> dict[str, bytes]:
    shown, envs = analysis.looks, analysis.data.envs
    columns = beside(len(envs))
    rows = math.ceil(len(envs) / columns)
    with drawing(2.4 * columns + 0.6, 2.1 * rows + 0.2) as figure:
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, env in zip(panels, envs, strict=False):
            curves = [curve for curve in analysis.curves if curve.env == env]
            for curve in curves:
                _band(axes, shown[curve.contestant], curve.steps, curve.band)
            for run in analysis.data.incomplete:
                if run.env == env and len(run.evaluations):
                    colour, curve = shown[run.contestant].colour, (run.evaluations.steps, run.evaluations.returns)
                    axes.plot(*curve, color=colour, lw=0.6, ls=":", marker="x", ms=3, markevery=[-1])
            axes.set(title=f"{literal(env)} ({counted([c.band.seeds for c in curves])})", xlabel="environment steps")
            axes.xaxis.set_major_formatter(thousands)
        for axes in panels[len(envs) :]:
            axes.set_axis_off()
        panels[0].set_ylabel("return per episode (IQM)")
        _legend(figure, list(shown.values()))
        return rendered(figure)


def _aggregates(analysis: Analysis) -> dict[str, bytes]:
    shown = analysis.looks
    with drawing(7.0, 0.9 + 0.24 * len(analysis.aggregates)) as figure:
        panels = figure.subplots(1, 3, sharey=True)
        for axes, kind in zip(panels, ("iqm", "median", "mean"), strict=True):
            _rows(axes, [(shown[a.contestant], getattr(a, kind)) for a in analysis.aggregates])
            axes.set_xlabel(f"{kind.upper() if kind == 'iqm' else kind} of normalised scores")
        figure.suptitle(_over(analysis), fontsize=8)
        return rendered(figure)


def _improvement(analysis: Analysis) -> dict[str, bytes]:
    shown = analysis.looks
    rows = [(shown[a.contestant], a.improvement) for a in analysis.aggregates if a.improvement]
    with drawing(4.6, 0.9 + 0.24 * len(rows)) as figure:
        axes = figure.subplots()
        axes.axvline(0.5, color="0.6", ls="--", lw=0.8)
        _rows(axes, rows)
        axes.set(xlim=(-0.02, 1.02), xlabel=f"P(improvement over {literal(analysis.reference_label)})")
        figure.suptitle(_over(analysis), fontsize=8)
        return rendered(figure)


def _profiles(analysis: Analysis) -> dict[str, bytes]:
    shown = analysis.looks
    with drawing(4.6, 2.7) as figure:
        axes = figure.subplots()
        for aggregate in analysis.aggregates:
            _band(axes, shown[aggregate.contestant], analysis.taus, aggregate.profile)
        axes.set(xlabel=r"normalised score $\tau$", ylabel=r"fraction of runs with score > $\tau$")
        axes.set_title(_over(analysis), fontsize=8)
        _legend(figure, [shown[aggregate.contestant] for aggregate in analysis.aggregates])
        return rendered(figure)


def _efficiency(analysis: Analysis) -> dict[str, bytes]:
    budget = max(run.budget for run in analysis.data.runs)

    def bar(result: TaskResult) -> tuple[float, str, bool]:
        reached = sum(map(math.isfinite, result.reached))
        never = not math.isfinite(result.median_reached)
        return budget if never else result.median_reached, f"{reached}/{result.seeds}", never

    label = literal(analysis.reference_label)
    results = [result for result in analysis.results if result.reached]
    return _bars(analysis, results, bar, f"steps to {label}'s final score", thousands)


def _cost(analysis: Analysis) -> dict[str, bytes]:
    def bar(result: TaskResult) -> tuple[float, str, bool]:
        return result.median_seconds / 60, "", False

    return _bars(analysis, analysis.results, bar, "minutes a run")


def _bars(
    analysis: Analysis,
    results: Sequence[TaskResult],
    bar: Callable[[TaskResult], tuple[float, str, bool]],
    title: str,
    ticks: Callable[[float, float], str] = lambda value, _: f"{value:g}",
) -> dict[str, bytes]:
    """Draw a group of bars for each task; hatched where the value is only a lower bound."""
    shown, envs = analysis.looks, analysis.data.envs
    with drawing(1.2 + 1.9 * len(envs), 2.5) as figure:
        axes = figure.subplots()
        width = 0.8 / len(shown)
        for result in results:
            height, text, bound = bar(result)
            place = envs.index(result.env) + (list(shown).index(result.contestant) - (len(shown) - 1) / 2) * width
            colour = shown[result.contestant].colour
            axes.bar(place, height, 0.9 * width, color=colour, hatch="////" if bound else "", edgecolor="white", lw=0)
            axes.annotate(text, (place, height), ha="center", va="bottom", fontsize=5)
        axes.set_xticks(range(len(envs)), list(map(literal, envs)))
        axes.set_ylabel(title)
        axes.yaxis.set_major_formatter(ticks)
        axes.set_title(f"median over {counted([result.seeds for result in results])}", fontsize=8)
        _legend(figure, list(shown.values()), patches=True)
        return rendered(figure)


def _band(axes: "Axes", look: Look, x: Any, band: Band) -> None:
    if band.interval:
        axes.fill_between(x, *band.interval, color=look.colour, alpha=0.15, lw=0)
    axes.plot(x, band.values, color=look.colour, ls=look.line)


def _rows(axes: "Axes", rows: Sequence[tuple[Look, Estimate]]) -> None:
    for place, (look, estimate) in enumerate(rows):
        if estimate.interval:
            axes.plot(estimate.interval, (place, place), color=look.colour, lw=4, alpha=0.45, solid_capstyle="butt")
        axes.plot(estimate.value, place, marker="|", ms=9, mew=2, color=look.colour, ls="")
    axes.set_yticks(range(len(rows)), [literal(look.label) for look, _ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")


def _legend(figure: "Figure", shown: Sequence[Look], patches: bool = False) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Patch(color=look.colour, label=literal(look.label))
        if patches
        else Line2D([], [], color=look.colour, ls=look.line, label=literal(look.label))
        for look in shown
    ]
    for columns in (3, 2, 1):  # the most that fit into the figure
        legend = figure.legend(handles=handles, loc="outside lower center", ncols=columns)
        if columns == 1 or legend.get_window_extent().width < figure.bbox.width:
            break
        legend.remove()
    # Its rows come beside what is drawn, not out of it.
    figure.set_figheight(figure.get_figheight() + LEGEND_ROW * math.ceil(len(shown) / columns))


def _over(analysis: Analysis) -> str:
    seeds = counted([aggregate.seeds for aggregate in analysis.aggregates])
    return f"{plural('task', len(analysis.aggregated))}, {seeds} each, 95% intervals"
