"""The report as one HTML page that needs nothing beside it: plotly.js, the data and the text are inside."""

from html import escape

from bisac.plotting import statistics
from bisac.plotting.looks import Look
from bisac.report import charts
from bisac.report.analysis import Analysis
from bisac.report.caveats import caveats
from bisac.report.html import cards, fill
from bisac.report.making import making
from bisac.report.verdicts import findings, numbers_table
from bisac.report.words import plural


def render_page(analysis: Analysis, title: str) -> str:
    """Return the page's HTML."""
    curves = charts.learning_curves(analysis)
    overall = [charts.aggregates(analysis), charts.improvement(analysis), charts.profiles(analysis)]
    overall = overall if analysis.aggregates else []
    costs = [charts.efficiency(analysis), charts.cost(analysis)] if analysis.results else []
    parts = {
        "title": escape(title),
        "lead": escape(_lead(analysis)),
        "warnings": "".join(f'<div class="warning"><p>{text}</p></div>' for text in caveats(analysis)),
        "chips": "".join(_chip(name, look) for name, look in analysis.looks.items()),
        "findings": findings(analysis),
        "curves": cards(curves),
        "normalisation": escape(_normalisation(analysis)),
        "overall": cards(overall, wide=("aggregates",)),
        "costs": cards(costs),
        "table": numbers_table(analysis),
        "reference": escape(analysis.reference_label),
        "enough": str(statistics.ENOUGH_SEEDS),
        "reps": f"{statistics.REPS:,}",
        "making": making(analysis),
    }
    return fill("template.html", parts, [*curves, *overall, *costs])


def _lead(analysis: Analysis) -> str:
    data = analysis.data
    seeds = len({run.seed for run in data.runs})
    return (
        f"{plural('contestant', len(data.contestants))} on {plural('task', len(data.envs))} with "
        f"{plural('seed', seeds)}, {data.record.settings['steps']:,} environment steps a run; "
        f"{len(data.runs) - len(data.incomplete)} of {len(data.runs)} runs are complete."
    )


def _chip(name: str, look: Look) -> str:
    """Return the button that hides or shows a contestant."""
    dash = "" if look.dash == "solid" else f' stroke-dasharray="{look.dash.replace("px", "")}"'
    line = f'<line x1="1" y1="4" x2="25" y2="4" stroke="{look.colour}" stroke-width="3"{dash}/>'
    return (
        f'<button class="chip" aria-pressed="true" data-contestant="{escape(name)}" title="Hide or show in all charts">'
        f'<svg width="26" height="8">{line}</svg>{escape(look.label)}</button>'
    )


def _normalisation(analysis: Analysis) -> str:
    scales = "; ".join(f"{s.env}: 0 is {s.zero:,.1f}, 1 is {s.one:,.1f}" for s in analysis.scales if s.usable)
    return (
        f"Scores are normalised task by task: 0 is what a random policy gets, 1 is the mean final score "
        f"of {analysis.reference_label}. {scales or 'No task could be normalised'}."
    )
