"""The report as one HTML page that needs nothing beside it: plotly.js, the data and the text are inside."""

import dataclasses
import json
import math
import re
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from itertools import product
from typing import Any

from bisac.errors import BisacError
from bisac.presets import listed
from bisac.report import charts
from bisac.report.analysis import Aggregate, Analysis, TaskResult
from bisac.report.charts import Chart
from bisac.report.look import Look, looks
from bisac.report.statistics import ENOUGH_SEEDS, Estimate
from bisac.sweeps.record import command_line


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
        "chips": "".join(_chip(name, look) for name, look in looks(analysis.data.contestants).items()),
        "findings": _findings(analysis),
        "curves": _cards(curves),
        "normalisation": escape(_normalisation(analysis)),
        "overall": _cards(overall, wide=("aggregates",)),
        "costs": _cards(costs),
        "table": _table(analysis),
        "reference": escape(looks(analysis.data.contestants)[analysis.reference].label),
        "enough": str(ENOUGH_SEEDS),
        "making": _making(analysis),
        "plotly": _plotly(),
        "charts": _json([dataclasses.asdict(chart) for chart in [*curves, *overall, *costs]]),
    }
    template = files("bisac.report").joinpath("template.html").read_text()
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
        names = looks(analysis.data.contestants)
        which = [
            f"{c.env}, {names[c.contestant].label}, seed {c.seed} ({c.taken:,} steps)"
            for c in data.incomplete
            if c.taken
        ]
        if unseen := len(data.incomplete) - len(which):
            which.append(f"{unseen} not evaluated yet")
        texts.append(
            f"<b>{len(data.incomplete)} of {len(data.curves)} runs are incomplete</b> and count in no statistic; where "
            f"they failed, that flatters the contestant: {escape('; '.join(which))}."
        )
    few = sorted({result.seeds for result in analysis.results if result.seeds < ENOUGH_SEEDS})
    if few:
        texts.append(
            f"<b>Fewer than {ENOUGH_SEEDS} seeds</b> in places: no difference can be established there, and from "
            f"one seed no interval is drawn at all."
        )
    left_out = [env for env in data.envs if env not in analysis.aggregated]
    if left_out:
        label = looks(analysis.data.contestants)[analysis.reference].label
        texts.append(
            f"<b>Left out of what is over all tasks</b>: {escape(', '.join(left_out))}. {escape(label)} has no "
            f"complete run there, or gained less than twice the standard error of its mean, so scores cannot be "
            f"divided by its gain."
        )
    counted = {aggregate.contestant for aggregate in analysis.aggregates}
    absent = [look.label for name, look in looks(data.contestants).items() if name not in counted]
    if analysis.aggregated and absent:
        texts.append(
            f"<b>Not in what is over all tasks</b>: {escape('; '.join(absent))}. No seed of theirs is complete on "
            f"every one of {escape(', '.join(analysis.aggregated))}."
        )
    if longer := {c.contestant: c.taken for c in data.curves if c.taken > 1.01 * c.budget}:
        names = [f"{looks(data.contestants)[name].label} {taken:,}" for name, taken in longer.items()]
        texts.append(
            f"<b>More steps than planned</b>: {escape('; '.join(names))}. What learns from rollouts ends with a whole "
            f"one, and is evaluated after rollouts only."
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
    """Over all tasks in words, task by task as a matrix."""
    shown = looks(analysis.data.contestants)
    label = escape(shown[analysis.reference].label)
    compared = [result for result in analysis.results if result.difference]
    if not compared:
        return f"<p>Nothing to compare with {label}.</p>"
    items = []
    for aggregate in analysis.aggregates:
        if aggregate.difference and aggregate.improvement:
            side, name = _side(aggregate.difference), escape(shown[aggregate.contestant].label)
            items.append(
                f'<li data-contestant="{escape(aggregate.contestant)}"><span class="verdict {side}">'
                f"{side or 'not established'}</span><span><b>{name}</b>: normalised IQM "
                f"{_signed(aggregate.difference)}, probability of improvement "
                f"{_with_interval(aggregate.improvement, '.2f')}, {_counted(aggregate.difference)}</span></li>"
            )
    over = f"Over {len(analysis.aggregated)} {_plural('task', analysis.aggregated)}, against {label}:"
    overall = f'<p class="note">{over}</p><ul class="findings">{"".join(items)}</ul>' if items else ""
    return f"{overall}{_matrix(analysis, shown, label)}"


def _matrix(analysis: Analysis, shown: dict[str, Look], label: str) -> str:
    rows = []
    for name in analysis.names:
        if name != analysis.reference:
            cells = (_matrix_cell(analysis.result(env, name), label) for env in analysis.data.envs)
            rows.append(
                f'<tr data-contestant="{escape(name)}"><td>{escape(shown[name].label)}</td>{"".join(cells)}</tr>'
            )
    head = "".join(f"<th>{escape(word)}</th>" for word in ("", *analysis.data.envs))
    note = f"Task by task, final IQM less that of {label}, with its 95% interval; what is grey is not established."
    table = f'<table class="matrix"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return f'<p class="note">{note}</p><div class="scroll">{table}</div>'


def _matrix_cell(result: TaskResult | None, reference: str) -> str:
    if result is None or result.difference is None:
        return f"<td>no complete run{f' of {reference}' if result else ''}</td>"
    difference = _signed(result.difference, ",.0f")
    return f'<td class="{_side(result.difference)}">{difference}<br><small>{_counted(result.difference)}</small></td>'


def _side(difference: Estimate) -> str:
    """On which side of the reference a contestant is; empty where that is not established."""
    if not difference.establishes(0.0):
        return ""
    return "better" if difference.value > 0 else "worse"


def _counted(estimate: Estimate) -> str:
    return f"{estimate.seeds} seed{'s' if estimate.seeds != 1 else ''}"


def _cards(shown: Iterable[Chart], wide: tuple[str, ...] = ()) -> str:
    return "".join(
        f'<section class="card{" wide" if chart.name in wide else ""}"><h3>{escape(chart.title)}</h3>'
        f'<p class="note">{escape(chart.note)}</p><div class="chart" id="{chart.name}"></div></section>'
        for chart in shown
    )


def _normalisation(analysis: Analysis) -> str:
    label = looks(analysis.data.contestants)[analysis.reference].label
    scales = "; ".join(f"{s.env}: 0 is {s.zero:,.1f}, 1 is {s.one:,.1f}" for s in analysis.scales if s.usable)
    return (
        f"Scores are normalised task by task: 0 is what a random policy gets, 1 is the mean final score "
        f"of {label}. {scales or 'No task could be normalised'}."
    )


def _table(analysis: Analysis) -> str:
    shown = looks(analysis.data.contestants)
    compared = ("difference", "verdict", "P(improvement)")
    head = ("task", "contestant", "seeds", "final score (IQM)", *compared, "steps to reach", "minutes")
    rows = "".join(_row(result, shown[result.contestant], analysis) for result in analysis.results)
    rows += "".join(_aggregate_row(each, shown[each.contestant], analysis) for each in analysis.aggregates)
    heads = "".join(f"<th>{word}</th>" for word in head)
    return f'<table class="numbers"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'


def _row(result: TaskResult, look: Look, analysis: Analysis) -> str:
    reached = sum(map(math.isfinite, result.reached))
    steps = f"{result.median_reached:,.0f}" if math.isfinite(result.median_reached) else "not reached"
    cells = [
        escape(result.env),
        escape(look.label),
        f"{result.seeds}" + (f" <small>of {result.planned}</small>" if result.seeds < result.planned else ""),
        _with_interval(result.score, ",.1f"),
        *_compared(result, analysis, ",.1f"),
        f"{steps} <small>{reached}/{result.seeds}</small>" if result.reached else "",
        f"{result.median_seconds / 60:,.1f}",
    ]
    return _cells(result.contestant, cells)


def _aggregate_row(aggregate: Aggregate, look: Look, analysis: Analysis) -> str:
    cells = [
        "<i>all, normalised</i>",
        escape(look.label),
        str(aggregate.seeds),
        _with_interval(aggregate.iqm, ".3f"),
        *_compared(aggregate, analysis, ".3f"),
        "",
        "",
    ]
    return _cells(aggregate.contestant, cells)


def _compared(of: TaskResult | Aggregate, analysis: Analysis, digits: str) -> tuple[str, str, str]:
    if of.difference is None or of.improvement is None:
        label = escape(looks(analysis.data.contestants)[analysis.reference].label)
        why = "reference" if of.contestant == analysis.reference else f"no run of {label} to compare with"
        return "", f"<small>{why}</small>", ""
    verdict = "established" if of.difference.establishes(0.0) else "<small>not established</small>"
    return _signed(of.difference, digits), verdict, _with_interval(of.improvement, ".2f")


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
    given = {name: value for name, value in record.settings.items() if value not in (None, [])}
    settings = ", ".join(f"{name.replace('_', ' ')} {_plain(value)}" for name, value in given.items())
    shared = ", ".join(f"{name.replace('_', ' ')} {_plain(value)}" for name, value in record.hyperparameters.items())
    shown = looks(analysis.data.contestants)
    own = "; ".join(
        f"{shown[c.name].label}: --algo {c.algo}{''.join(f' {name}={_plain(value)}' for name, value in c.settings)}"
        for c in analysis.data.contestants
    )
    rows = {
        "seeds": ", ".join(map(str, sorted({curve.seed for curve in analysis.data.curves}))),
        "every run": settings,
        "hyperparameters given for all": shared or "none: each algorithm's own defaults, but for the presets",
        "contestants": own,
        "presets": _presets(analysis) or "none",
        "versions": ", ".join(f"{name} {version}" for name, version in made.get("versions", {}).items() if version),
        "machine": ", ".join(str(made[name]) for name in ("cpu", "platform") if made.get(name)),
        "cores of the sweep, of a run": f"{made.get('cores')}, {_plain(_distinct(analysis, 'cores'))}",
    }
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in rows.items())
    return f"<pre>{escape(commands)}</pre><dl>{listed}</dl>{_mixed(analysis)}"


def _presets(analysis: Analysis) -> str:
    """What the runs have from their tasks' presets; a gamma is the task's, the same for all contestants."""
    found: dict[tuple[str, str], list[str]] = {}
    shown = looks(analysis.data.contestants)
    for contestant, env in product(analysis.data.contestants, analysis.data.envs):
        config = next((c.config for c in analysis.data.curves if c.config and c.is_of(env, contestant.name)), None)
        begin = contestant.start(env)
        if config and begin.hyperparameters:
            used = {name: config["hyperparameters"][name] for name in begin.hyperparameters}
            used = listed(used | ({"num_envs": config["run"]["num_envs"]} if begin.num_envs else {}))
            found.setdefault((env, used), []).append(shown[contestant.name].label)
    return "; ".join(
        f"{env}: {used}" + ("" if len(names) == len(shown) else f" ({', '.join(names)})")
        for (env, used), names in found.items()
    )


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
