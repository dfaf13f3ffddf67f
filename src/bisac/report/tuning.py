"""The page of a search for hyperparameters: the best trial, how the search went, and what each setting is worth."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from bisac.errors import BisacError
from bisac.report.html import cards, fill
from bisac.report.tuning_charts import curves, history, importance, slices
from bisac.report.words import plain, plural
from bisac.storage import write_atomic
from bisac.sweeps.folders import read_evaluations
from bisac.sweeps.record import command_line
from bisac.tuning.record import Tuning, TuningRecord, read_record, trial_name
from bisac.tuning.study import STUDY, Study, Trial, best

ENOUGH = 30
"""Complete trials below which the page warns of how little importances mean."""


def write_tuning_page(out: Path, page: Path | None = None) -> Path:
    """Write the page of a search's folder, which may still be searched in; returns where it is."""
    record = read_record(out)
    if not (out / STUDY).exists():
        raise BisacError(f"{out} has no {STUDY}: nothing was tried there yet.")
    study = Study(out, record.tuning.space)
    trials = study.trials()
    if best(trials) is None:
        raise BisacError(f"no trial in {out} is complete yet; there is nothing to report.")
    page = page or out / "tune.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(page, render_tuning(record, trials, study.importances(), out).encode())
    return page


def render_tuning(record: TuningRecord, trials: Sequence[Trial], importances: Mapping[str, float], out: Path) -> str:
    """Return the page's HTML."""
    tuning, top = record.tuning, best(list(trials))
    assert top is not None
    ran = {trial.number: read_evaluations(out / trial_name(trial.number)) for trial in trials}
    search, settings = [history(trials, top), curves(trials, ran, top)], slices(tuning.space, trials, top)
    search = [importance(importances), *search] if importances else search
    parts = {
        "title": escape(f"Search {out.resolve().name}"),
        "lead": escape(_lead(tuning, trials)),
        "warnings": _warning(trials),
        "best": _best_table(tuning, top, trials, out),
        "search": cards(search, wide=("curves",)),
        "settings": cards(settings),
        "trials": _trials_table(tuning, trials),
        "making": _making(record),
    }
    return fill("tuning.html", parts, [*search, *settings])


def _lead(tuning: Tuning, trials: Sequence[Trial]) -> str:
    count = {state: sum(trial.state == state for trial in trials) for state in ("complete", "pruned", "failed")}
    return (
        f"{tuning.contestant.algo} on {tuning.env}, {tuning.settings.steps:,} environment steps a trial; "
        f"{plural('trial', count['complete'])} complete, {count['pruned']} ended early, {count['failed']} failed."
    )


def _warning(trials: Sequence[Trial]) -> str:
    complete = sum(trial.state == "complete" for trial in trials)
    if complete >= ENOUGH:
        return ""
    text = f"Only {plural('trial', complete)} complete: what is said of each setting's importance is mostly noise."
    return f'<div class="warning"><p>{escape(text)}</p></div>'


def _best_table(tuning: Tuning, top: Trial, trials: Sequence[Trial], out: Path) -> str:
    """Compare the best trial's values with the defaults."""
    default = vars(tuning.run(out, 0, {}).algorithm)
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(_value(value))}</td><td>{escape(_value(default[name]))}</td>"
        f"<td>{escape(str(tuning.space[name]))}</td></tr>"
        for name, value in top.values.items()
    )
    scored = (trial for trial in trials if trial.number == 0 and trial.score is not None)
    first = next((trial for trial in scored if all(default[n] == value for n, value in trial.values.items())), None)
    beside = f"; the first trial, with the defaults, scored {first.score:,.1f}" if first and first is not top else ""
    said = f"{trial_name(top.number)} scored {top.score:,.1f}{beside}. best.toml holds its settings."
    head = "<tr><th>setting</th><th>best trial</th><th>default</th><th>searched</th></tr>"
    return f'<p>{escape(said)}</p><table class="numbers">{head}{rows}</table>'


def _trials_table(tuning: Tuning, trials: Sequence[Trial]) -> str:
    """List all trials, the best first."""
    order = sorted(trials, key=lambda trial: (trial.score is None, -(trial.score or 0.0), trial.number))
    head = "".join(f"<th>{escape(name)}</th>" for name in ("trial", "", "score", *tuning.space))
    rows = "".join(
        f"<tr><td>{trial.number}</td><td>{escape(_ended(trial))}</td>"
        f"<td>{'' if trial.score is None else f'{trial.score:,.1f}'}</td>"
        + "".join(f"<td>{escape(_value(trial.values.get(name, '')))}</td>" for name in tuning.space)
        + "</tr>"
        for trial in order
    )
    return f'<table class="numbers"><tr>{head}</tr>{rows}</table>'


def _ended(trial: Trial) -> str:
    words = {"complete": "complete", "pruned": "ended early", "failed": "failed", "running": "not over"}[trial.state]
    return f"{words}: {trial.problem}" if trial.problem else words


def _making(record: TuningRecord) -> str:
    made, tuning = record.provenance, record.tuning
    settings = tuning.to_json() | tuning.to_json()["fixed"]
    given = {
        name: value for name, value in settings.items() if name not in ("search", "fixed") and value not in (None, ())
    }
    rows = {
        "every trial": ", ".join(f"{name.replace('_', ' ')} {plain(value)}" for name, value in given.items()),
        "versions": ", ".join(f"{name} {version}" for name, version in made.get("versions", {}).items() if version),
        "machine": ", ".join(str(made[name]) for name in ("cpu", "platform") if made.get(name)),
    }
    terms = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in rows.items())
    return f"<pre>{escape(chr(10).join(map(command_line, record.commands)))}</pre><dl>{terms}</dl>"


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else plain(value)
