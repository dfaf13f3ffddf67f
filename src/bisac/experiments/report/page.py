"""The report as one HTML page that needs nothing beside it: plotly.js, the data and the text are inside."""

import dataclasses
import json
import math
import re
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from typing import Any

from bisac.errors import BisacError
from bisac.experiments.report import charts
from bisac.experiments.report.analysis import Aggregate, Analysis, TaskResult
from bisac.experiments.report.charts import Chart
from bisac.experiments.report.look import Look, looks
from bisac.experiments.report.statistics import ENOUGH_SEEDS, Estimate
from bisac.experiments.sweep import command_line


def render_page(analysis: Analysis, title: str) -> str:
    """The page's HTML."""
    curves = charts.learning_curves(analysis)
    overall = [charts.aggregates(analysis), charts.improvement(analysis), charts.profiles(analysis)]
    overall = overall if analysis.aggregates else []
    costs = [charts.efficiency(analysis), charts.cost(analysis)] if analysis.results else []
    parts = {
        "title": escape(title),
        "lead": escape(_lead(analysis)),
        "warnings": _warnings(analysis),
        "chips": "".join(_chip(name, look) for name, look in looks(analysis.names).items()),
        "findings": _findings(analysis),
        "curves": _cards(curves),
        "normalisation": escape(_normalisation(analysis)),
        "overall": _cards(overall, wide=("aggregates",)),
        "costs": _cards(costs),
        "table": _table(analysis),
        "reference": escape(looks(analysis.names)[analysis.reference].label),
        "enough": str(ENOUGH_SEEDS),
        "making": _making(analysis),
        "plotly": _plotly(),
        "charts": _json([dataclasses.asdict(chart) for chart in [*curves, *overall, *costs]]),
    }
    template = files("bisac.experiments.report").joinpath("template.html").read_text()
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], template)


def _lead(analysis: Analysis) -> str:
    data, settings = analysis.data, analysis.data.record.settings
    complete = len(data.curves) - len(data.incomplete)
    seeds = len({curve.seed for curve in data.curves})
    return (
        f"{len(data.contestants)} contestants on {len(data.envs)} {_plural('task', data.envs)} with {seeds} "
        f"{'seeds' if seeds != 1 else 'seed'}, {settings['steps']:,} environment steps a run; {complete} of "
        f"{len(data.curves)} runs are complete."
    )


def _warnings(analysis: Analysis) -> str:
    data, texts = analysis.data, []
    if data.incomplete:
        names = looks(analysis.names)
        which = "; ".join(
            f"{c.env}, {names[c.contestant].label}, seed {c.seed} ({c.taken:,} steps)" for c in data.incomplete
        )
        texts.append(
            f"<b>{len(data.incomplete)} of {len(data.curves)} runs are incomplete</b> and count in no statistic; where "
            f"they failed, that flatters the contestant: {escape(which)}."
        )
    few = sorted({result.seeds for result in analysis.results if result.seeds < ENOUGH_SEEDS})
    if few:
        texts.append(
            f"<b>Fewer than {ENOUGH_SEEDS} seeds</b> in places: no difference can be established there, and from "
            f"one seed no interval is drawn at all."
        )
    left_out = [env for env in data.envs if env not in analysis.aggregated]
    if left_out:
        label = looks(analysis.names)[analysis.reference].label
        texts.append(
            f"<b>Left out of what is over all tasks</b>: {escape(', '.join(left_out))}. {escape(label)} has no "
            f"complete run there, or gained less than twice its seeds' standard deviation, so scores cannot be "
            f"divided by its gain."
        )
    return "".join(f'<div class="warning"><p>{text}</p></div>' for text in texts)


def _chip(name: str, look: Look) -> str:
    dash = "" if look.dash == "solid" else f' stroke-dasharray="{look.dash.replace("px", "")}"'
    line = f'<line x1="1" y1="4" x2="25" y2="4" stroke="{look.colour}" stroke-width="3"{dash}/>'
    return (
        f'<button class="chip" aria-pressed="true" data-contestant="{escape(name)}" title="Hide or show in all charts">'
        f'<svg width="26" height="8">{line}</svg>{escape(look.label)}</button>'
    )


def _findings(analysis: Analysis) -> str:
    shown = looks(analysis.names)
    label = escape(shown[analysis.reference].label)
    items = []
    for aggregate in analysis.aggregates:
        if aggregate.difference and aggregate.improvement:
            chance = _with_interval(aggregate.improvement, ".2f")
            text = (
                f"over {len(analysis.aggregated)} {_plural('task', analysis.aggregated)}, normalised IQM "
                f"{_signed(aggregate.difference)}; probability of improvement {chance}"
            )
            items.append(_finding(aggregate.difference, shown[aggregate.contestant], text))
    for result in analysis.results:
        if result.difference:
            text = f"on {escape(result.env)}, IQM {_signed(result.difference, ',.0f')}"
            items.append(_finding(result.difference, shown[result.contestant], text))
    if not items:
        return f"<p>Nothing to compare with {label}.</p>"
    note = f'<p class="note">Differences of final scores from those of {label}, with 95% intervals.</p>'
    return f'{note}<ul class="findings">{"".join(items)}</ul>'


def _finding(difference: Estimate, look: Look, text: str) -> str:
    kind, word = "", "not established"
    if difference.establishes(0.0):
        kind, word = (" better", "better") if difference.value > 0 else (" worse", "worse")
    seeds = f"{difference.seeds} seed{'s' if difference.seeds != 1 else ''}"
    return (
        f'<li><span class="verdict{kind}">{word}</span><span><b>{escape(look.label)}</b> {text} ({seeds})</span></li>'
    )


def _cards(shown: Iterable[Chart], wide: tuple[str, ...] = ()) -> str:
    return "".join(
        f'<section class="card{" wide" if chart.name in wide else ""}"><h3>{escape(chart.title)}</h3>'
        f'<p class="note">{escape(chart.note)}</p><div class="chart" id="{chart.name}"></div></section>'
        for chart in shown
    )


def _normalisation(analysis: Analysis) -> str:
    label = looks(analysis.names)[analysis.reference].label
    scales = "; ".join(f"{s.env}: 0 is {s.zero:,.1f}, 1 is {s.one:,.1f}" for s in analysis.scales if s.usable)
    return (
        f"Scores are normalised task by task: 0 is the mean first evaluation of all runs, 1 is the mean final score "
        f"of {label}. {scales or 'No task could be normalised'}."
    )


def _table(analysis: Analysis) -> str:
    shown = looks(analysis.names)
    head = (
        "task",
        "contestant",
        "seeds",
        "final score (IQM)",
        "difference",
        "",
        "P(improvement)",
        "steps to reach",
        "reached by",
        "minutes",
    )
    rows = "".join(_row(result, shown[result.contestant]) for result in analysis.results)
    rows += "".join(_aggregate_row(aggregate, shown[aggregate.contestant]) for aggregate in analysis.aggregates)
    return f"<table><thead><tr>{''.join(f'<th>{word}</th>' for word in head)}</tr></thead><tbody>{rows}</tbody></table>"


def _row(result: TaskResult, look: Look) -> str:
    reached = sum(map(math.isfinite, result.reached))
    steps = (
        f"{result.median_reached:,.0f}" if result.reached and math.isfinite(result.median_reached) else "not reached"
    )
    cells = [
        escape(result.env),
        escape(look.label),
        f"{result.seeds}" + (f" <small>of {result.planned}</small>" if result.seeds < result.planned else ""),
        _with_interval(result.score, ",.1f"),
        *_compared(result.difference, result.improvement, ",.1f"),
        steps if result.reached else "",
        f"{reached}/{result.seeds}" if result.reached else "",
        f"{result.median_seconds / 60:,.1f}",
    ]
    return _cells(result.contestant, cells)


def _aggregate_row(aggregate: Aggregate, look: Look) -> str:
    cells = [
        "<i>all, normalised</i>",
        escape(look.label),
        str(aggregate.seeds),
        _with_interval(aggregate.iqm, ".3f"),
        *_compared(aggregate.difference, aggregate.improvement, ".3f"),
        "",
        "",
        "",
    ]
    return _cells(aggregate.contestant, cells)


def _compared(difference: Estimate | None, improvement: Estimate | None, digits: str) -> tuple[str, str, str]:
    if difference is None or improvement is None:
        return "", "<small>reference</small>", ""
    verdict = "established" if difference.establishes(0.0) else "<small>not established</small>"
    return _signed(difference, digits), verdict, _with_interval(improvement, ".2f")


def _cells(contestant: str, cells: list[str]) -> str:
    return f'<tr data-contestant="{escape(contestant)}">{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def _with_interval(estimate: Estimate, digits: str) -> str:
    if estimate.interval is None:
        return f"{estimate.value:{digits}} <small>[no interval]</small>"
    low, high = estimate.interval
    return f"{estimate.value:{digits}} <small>[{low:{digits}}, {high:{digits}}]</small>"


def _signed(estimate: Estimate, digits: str = ".2f") -> str:
    return _with_interval(estimate, f"+{digits}")


def _making(analysis: Analysis) -> str:
    record = analysis.data.record
    made = record.provenance
    commands = "\n".join(command_line(command) for command in record.commands)
    settings = ", ".join(f"{name.replace('_', ' ')} {_plain(value)}" for name, value in record.settings.items())
    shared = ", ".join(f"{name.replace('_', ' ')} {_plain(value)}" for name, value in record.hyperparameters.items())
    shown = looks(analysis.names)
    own = "; ".join(
        f"{shown[c.name].label}: --algo {c.algo}{''.join(f' {name}={_plain(value)}' for name, value in c.settings)}"
        for c in analysis.data.contestants
    )
    rows = {
        "every run": settings,
        "hyperparameters given for all": shared or "none: each algorithm's own defaults",
        "contestants": own,
        "presets": _presets(analysis) or "none",
        "versions": ", ".join(f"{name} {version}" for name, version in made.get("versions", {}).items() if version),
        "machine": ", ".join(str(made[name]) for name in ("cpu", "platform") if made.get(name)),
        "cores of the sweep, of a run": f"{made.get('cores')}, {_plain(_distinct(analysis, 'cores'))}",
    }
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in rows.items())
    return f"<pre>{escape(commands)}</pre><dl>{listed}</dl>{_mixed(analysis)}"


def _presets(analysis: Analysis) -> str:
    """Gammas are the task's: the same for all contestants, and seldom the default."""
    found = {}
    for curve in analysis.data.curves:
        if curve.config:
            found.setdefault(curve.env, set()).add(curve.config["hyperparameters"]["gamma"])
    return "; ".join(f"{env}: gamma {_plain(sorted(gammas))}" for env, gammas in found.items())


def _mixed(analysis: Analysis) -> str:
    """Say it where runs were not made alike."""
    texts = [
        f"The runs differ in their {name}: {escape(_plain(values))}."
        for name in ("versions", "platform")
        if len(values := _distinct(analysis, name)) > 1
    ]
    return "".join(f'<div class="warning"><p>{text}</p></div>' for text in texts)


def _distinct(analysis: Analysis, name: str) -> list[str]:
    return sorted({json.dumps(c.config[name], sort_keys=True) for c in analysis.data.curves if name in c.config})


def _plain(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _plural(word: str, items: list[str]) -> str:
    return word if len(items) == 1 else f"{word}s"


def _plotly() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise BisacError("a report needs rliable and plotly: pip install 'bisac[report]'.") from error
    return get_plotlyjs().replace("</script", "<\\/script")


def _json(value: Any) -> str:
    """In a script element nothing may look like its end."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
