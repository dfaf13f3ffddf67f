"""Learning curves of several runs: a line per algorithm and task, with a band over seeds.

Runs are grouped by what their config.json says, so that any folders of runs will do; no sweep's record is needed.
"""

import dataclasses
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import tyro
from jaxtyping import Float

from bisac.algos import REGISTRY, algorithm_from_json
from bisac.errors import BisacError
from bisac.figures.base import Made, PaperFigure, Tell
from bisac.plotting.looks import Look, assign_looks
from bisac.plotting.statistics import Band, bootstrap, interquartile_mean, on_common_steps, plain_mean
from bisac.plotting.style import (
    COLOURS,
    LineStyle,
    beside,
    drawing,
    literal,
    rendered,
    thousands,
)
from bisac.runs.demos import DIGEST
from bisac.sweeps.contestants import as_typed
from bisac.sweeps.folders import Evaluations, find_runs, read_evaluations
from bisac.validate import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

StatisticName = Literal["mean", "iqm"]
"""What is taken over seeds: the mean, or the mean of the middle half (interquartile mean), which outliers move less."""
STATISTICS = {"mean": plain_mean, "iqm": interquartile_mean}
"""The functions that these names stand for."""


@dataclass(frozen=True)
class FoundRun:
    """A run that was found on disk, and what tells it from others."""

    path: Path
    """The run's folder."""
    task: str
    """The id of the run's environment."""
    algo: str
    """The algorithm with its variant, as `style.COLOURS` names it."""
    settings: tuple[tuple[str, str], ...]
    """All else that the run was made of, but for its seed."""
    seed: int
    """The run's seed."""
    evaluations: Evaluations
    """What the run's folder tells of its returns."""


@dataclass(frozen=True)
class SetupCurve:
    """The learning curve of runs that differ by nothing but their seed."""

    task: str
    """The id of the runs' environment."""
    algo: str
    """The algorithm with its variant, as `style.COLOURS` names it."""
    label: str
    """What the legend calls it."""
    look: Look
    """The look of its algorithm."""
    seeds: list[int]
    """The seeds of the runs."""
    steps: Float[np.ndarray, "step"]
    """Environment steps at which all runs are known."""
    returns: Float[np.ndarray, "seed step"]
    """Each run's return at those steps."""

    def band(self, statistic: StatisticName, confidence: float) -> Band:
        """Return the statistic over seeds at each step, with its confidence interval."""
        return bootstrap(STATISTICS[statistic], self.returns[:, None], confidence=confidence)


def read_run(path: Path) -> FoundRun:
    """Read a run's folder: its evaluations, and what it was made of."""
    evaluations = read_evaluations(path)
    config = evaluations.config
    try:
        algo, run = config["algo"], dict(config["run"])
        hyperparameters = _filled(algo, dict(config["hyperparameters"]), config.get("algo_module"))
        hyperparameters |= {"num_envs": run.get("num_envs"), "env_arg": " ".join(run.get("env_arg", ()))}
        hyperparameters |= {"init": run.get("init"), "with_replay": run.get("with_replay", False)}
        hyperparameters["demos"] = run.get("demos") and f"{Path(run['demos']).name} {config.get(DIGEST, '')[:8]}"
        task, seed = str(config["env"]), int(run["seed"])
    except (KeyError, TypeError, ValueError) as error:
        raise BisacError(f"{path} is not a run folder of this bisac: {error!r}.") from error
    name = variant(algo, hyperparameters)
    if name not in COLOURS and algo not in REGISTRY:
        raise BisacError(f"{path} is of an algorithm that this bisac does not know: '{algo}'.")
    if not len(evaluations):
        raise BisacError(f"{path} has no evaluation yet; wait for its first.")
    settings = tuple(sorted((name, as_typed(value)) for name, value in hyperparameters.items()))
    return FoundRun(path, task, name, settings, seed, evaluations)


def _filled(algo: str, hyperparameters: dict[str, Any], module: str | None) -> dict[str, Any]:
    """Return hyperparameters with those that are younger than the file that has them: so old runs and new ones meet."""
    try:
        return dataclasses.asdict(algorithm_from_json(algo, hyperparameters, module))
    except BisacError:  # some of them are gone since
        return hyperparameters


def variant(algo: str, hyperparameters: dict[str, Any]) -> str:
    """Return the name under which an algorithm has a colour: two of them have one for a variant too."""
    if algo == "bisac" and hyperparameters.get("refinement") == "correction":
        return "bisac-correction"
    if algo == "sac" and hyperparameters.get("critic") == "vdn-a":
        return "sac-vdn-a"
    return algo


def setup_curves(runs: list[FoundRun]) -> list[SetupCurve]:
    """Return a curve for each setup: its seeds together, at the steps at which all of them are known."""
    curves = []
    rank = [*COLOURS, *sorted({run.algo for run in runs} - COLOURS.keys())]
    looks = assign_looks((algo,) for algo in rank)
    in_order = sorted(runs, key=lambda r: (r.task, rank.index(r.algo), r.settings, r.seed))
    for (task, algo), same in groupby(in_order, key=lambda r: (r.task, r.algo)):
        setups = [list(members) for _, members in groupby(same, key=lambda r: r.settings)]
        for members in setups:
            seeds = [run.seed for run in members]
            if len(set(seeds)) < len(seeds):
                names = " and ".join(str(run.path) for run in members if seeds.count(run.seed) > 1)
                raise BisacError(f"{names} are of the same seed and setup; a band needs each seed once: leave one out.")
            known = [run.evaluations for run in members]
            steps, returns = on_common_steps([each.steps for each in known], [each.returns for each in known])
            if not len(steps):
                raise BisacError(
                    f"the runs of {algo} on {task} were evaluated at no common stretch of steps; draw them apart."
                )
            label = looks[algo].label + _difference(members[0], [others[0] for others in setups])
            curves.append(SetupCurve(task, algo, label, looks[algo], seeds, steps, returns))
    return curves


def _difference(run: FoundRun, setups: list[FoundRun]) -> str:
    """Return what tells this setup of an algorithm from its others."""
    differing = sorted({name for other in setups for name, value in set(other.settings) ^ set(run.settings)})
    own = dict(run.settings)
    return "".join(f", {name.replace('_', ' ')} {own.get(name, 'unset')}" for name in differing)


@dataclass(frozen=True)
class CurvesFigure(PaperFigure):
    """Learning curves of runs or sweeps: mean or interquartile mean over seeds, with confidence bands, per task.

    RUN is a run folder or a folder of them at any depth, such as runs/ or a sweep's. Runs that differ by nothing but
    their seed are one line; setups of one algorithm share its colour. A line of one seed gets no band.
    """

    runs: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN")] = ()
    """Run folders, or folders that hold some."""
    statistic: StatisticName = "mean"
    """What is taken over seeds: the mean, or the interquartile mean."""
    confidence: float = 0.95
    """Confidence of the band, which is by bootstrap over seeds."""

    def __post_init__(self):
        require(self, "between 0 and 1", lambda v: 0.0 < v < 1.0, "confidence")

    def make(self, tell: Tell) -> Made:
        """Gather the runs, then draw their curves."""
        if not self.runs:
            raise BisacError("'bisac figure curves' needs one RUN or more: run folders, or folders that hold some.")
        tell("reading runs")
        curves = setup_curves([read_run(path) for path in find_runs(self.runs)])
        bands = [curve.band(self.statistic, self.confidence) for curve in curves]
        found = list(zip(curves, bands, strict=True))
        numbers = {"statistic": self.statistic, "groups": [self._numbers(*one) for one in found]}
        return Made(numbers, _draw(curves, bands), [_sentence(*one) for one in found])

    def _numbers(self, curve: SetupCurve, band: Band) -> dict[str, Any]:
        low, high = band.interval or (None, None)
        steps = curve.steps.astype(int)
        told = {name: value for name, value in vars(curve).items() if name != "look"}
        return told | {"steps": steps, self.statistic: band.values, "low": low, "high": high}


def _sentence(curve: SetupCurve, band: Band) -> str:
    last = f"{curve.task}, {curve.label}: {band.values[-1]:,.1f} at step {curve.steps[-1]:,.0f}"
    if not band.interval:
        return f"{last} (1 seed, so no band)"
    low, high = band.interval
    return f"{last}, {low[-1]:,.1f} to {high[-1]:,.1f} ({band.seeds} seeds)"


def _draw(curves: list[SetupCurve], bands: list[Band]) -> dict[str, bytes]:
    """Draw a panel for each task."""
    tasks = sorted({curve.task for curve in curves})
    columns = beside(len(tasks))
    rows = -(-len(tasks) // columns)
    styles = _line_styles(curves)
    with drawing(max(3.6, 2.9 * columns), 2.3 * rows + 0.3 + 0.16 * len(styles) / columns) as figure:
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes in panels[len(tasks) :]:
            axes.set_visible(False)
        for axes, task in zip(panels, tasks, strict=False):
            for curve, band in zip(curves, bands, strict=True):
                if curve.task == task:
                    _draw_curve(axes, curve, band, styles[curve.label])
            axes.set(title=literal(task), xlabel="environment steps")
            axes.xaxis.set_major_formatter(thousands)
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}".replace("-", "\N{MINUS SIGN}"))
        for axes in panels[::columns]:
            axes.set_ylabel("return per episode")
        lines = {text: line for axes in panels for line, text in zip(*axes.get_legend_handles_labels(), strict=True)}
        labels = min(len(styles), 2 * columns - (columns > 1))
        figure.legend(list(lines.values()), list(lines), loc="outside lower center", ncols=labels)
        return rendered(figure)


def _draw_curve(axes: "Axes", curve: SetupCurve, band: Band, style: LineStyle) -> None:
    colour = curve.look.colour
    if band.interval:
        axes.fill_between(curve.steps, *band.interval, color=colour, alpha=0.18, lw=0)
    marker = "o" if len(curve.steps) == 1 else ""
    axes.plot(curve.steps, band.values, marker=marker, color=colour, ls=style, label=literal(curve.label))


def _line_styles(curves: list[SetupCurve]) -> dict[str, LineStyle]:
    """Return each setup's line style: its algorithm's, and for further setups one that no algorithm has."""
    styles: dict[str, LineStyle] = {}
    for algo in dict.fromkeys(curve.algo for curve in curves):
        labels = sorted({curve.label for curve in curves if curve.algo == algo})  # the plain label comes first
        line = next(curve.look.line for curve in curves if curve.algo == algo)
        styles |= {label: line if i == 0 else (0, (1.0 + i, 1.0)) for i, label in enumerate(labels)}
    return styles
