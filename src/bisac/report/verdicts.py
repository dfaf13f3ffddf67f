"""The page's comparison with the reference: in words over all tasks, as a matrix task by task, and every number."""

import math
from html import escape

from bisac.report.analysis import Aggregate, Analysis, TaskResult
from bisac.report.words import decimals, plural, side, with_interval


def findings(analysis: Analysis) -> str:
    """Return what is established, as HTML: over all tasks in words, task by task as a matrix."""
    label = escape(analysis.reference_label)
    if not any(result.difference for result in analysis.results):
        return f"<p>Nothing to compare with {label}.</p>"
    items = "".join(_finding(aggregate, analysis) for aggregate in analysis.aggregates)
    over = f"Over {plural('task', len(analysis.aggregated))}, against {label}:"
    overall = f'<p class="note">{over}</p><ul class="findings">{items}</ul>' if items else ""
    return f"{overall}{_matrix(analysis)}"


def _finding(aggregate: Aggregate, analysis: Analysis) -> str:
    if not (aggregate.difference and aggregate.improvement):
        return ""
    verdict, name = side(aggregate.difference), escape(analysis.looks[aggregate.contestant].label)
    return (
        f'<li data-contestant="{escape(aggregate.contestant)}"><span class="verdict {verdict}">'
        f"{verdict or 'not established'}</span><span><b>{name}</b>: normalised IQM "
        f"{with_interval(aggregate.difference, '+.2f')}, probability of improvement "
        f"{with_interval(aggregate.improvement, '.2f')}, {plural('seed', aggregate.difference.seeds)}</span></li>"
    )


def _matrix(analysis: Analysis) -> str:
    label, rows = escape(analysis.reference_label), []
    for name in analysis.names:
        if name != analysis.reference:
            cells = "".join(_matrix_cell(analysis.result(env, name), label) for env in analysis.data.envs)
            contestant = escape(analysis.looks[name].label)
            rows.append(f'<tr data-contestant="{escape(name)}"><td>{contestant}</td>{cells}</tr>')
    head = "".join(f"<th>{escape(word)}</th>" for word in ("", *analysis.data.envs))
    note = f"Task by task, final IQM less that of {label}, with its 95% interval; what is grey is not established."
    table = f'<table class="matrix"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return f'<p class="note">{note}</p><div class="scroll">{table}</div>'


def _matrix_cell(result: TaskResult | None, reference: str) -> str:
    if result is None or result.difference is None:
        return f"<td>no complete run{f' of {reference}' if result else ''}</td>"
    difference = with_interval(result.difference, f"+,.{decimals(result.difference)}f")
    seeds = plural("seed", result.difference.seeds)
    return f'<td class="{side(result.difference)}">{difference}<br><small>{seeds}</small></td>'


def numbers_table(analysis: Analysis) -> str:
    """Return the table of all numbers as HTML: a row for each task and contestant, then those over all tasks."""
    compared = ("difference", "verdict", "P(improvement)")
    head = ("task", "contestant", "seeds", "final score (IQM)", *compared, "steps to reach", "minutes")
    rows = "".join(_row(result, analysis) for result in analysis.results)
    rows += "".join(_aggregate_row(each, analysis) for each in analysis.aggregates)
    heads = "".join(f"<th>{word}</th>" for word in head)
    return f'<table class="numbers"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'


def _row(result: TaskResult, analysis: Analysis) -> str:
    reached = sum(map(math.isfinite, result.reached))
    steps = f"{result.median_reached:,.0f}" if math.isfinite(result.median_reached) else "not reached"
    cells = [
        escape(result.env),
        escape(analysis.looks[result.contestant].label),
        f"{result.seeds}" + (f" <small>of {result.planned}</small>" if result.seeds < result.planned else ""),
        with_interval(result.score, f",.{decimals(result.score, 1)}f") + _success(result),
        *_compared(result, analysis, f"+,.{decimals(result.difference or result.score, 1)}f"),
        f"{steps} <small>{reached}/{result.seeds}</small>" if result.reached else "",
        f"{result.median_seconds / 60:,.1f}",
    ]
    return _cells(result.contestant, cells)


def _success(result: TaskResult) -> str:
    """Return the share of final evaluations that succeeded, where the task tells it."""
    return "" if result.success_rate is None else f"<br><small>success {result.success_rate:.0%}</small>"


def _aggregate_row(aggregate: Aggregate, analysis: Analysis) -> str:
    cells = [
        "<i>all, normalised</i>",
        escape(analysis.looks[aggregate.contestant].label),
        str(aggregate.seeds),
        with_interval(aggregate.iqm, ".3f"),
        *_compared(aggregate, analysis, "+.3f"),
        "",
        "",
    ]
    return _cells(aggregate.contestant, cells)


def _compared(of: TaskResult | Aggregate, analysis: Analysis, digits: str) -> tuple[str, str, str]:
    if of.difference is None or of.improvement is None:
        label = escape(analysis.reference_label)
        why = "reference" if of.contestant == analysis.reference else f"no run of {label} to compare with"
        return "", f"<small>{why}</small>", ""
    verdict = "established" if of.difference.establishes(0.0) else "<small>not established</small>"
    return with_interval(of.difference, digits), verdict, with_interval(of.improvement, ".2f")


def _cells(contestant: str, cells: list[str]) -> str:
    return f'<tr data-contestant="{escape(contestant)}">{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
