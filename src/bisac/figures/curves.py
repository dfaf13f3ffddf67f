"""Learning curves of several runs: a line per algorithm and task, with a band over seeds."""

import dataclasses
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro
from jaxtyping import Float

from bisac.errors import BisacError
from bisac.figures.base import Made, PaperFigure, Tell
from bisac.plotting.style import COLOURS, LABELS, LINE_STYLES, drawing, rendered, thousands
from bisac.runs.folder import RunFolder
from bisac.runs.log import read_progress
from bisac.storage import read_file
from bisac.validate import require

Statistic = Literal["mean", "iqm"]
"""Over seeds: the mean, or the mean of the middle half (interquartile mean), which an outlier moves less."""


@dataclass(frozen=True)
class Curve:
    """One run's evaluations."""

    path: Path
    task: str
    algo: str
    """The algorithm with its variant, as `style.COLOURS` names it."""
    settings: tuple[tuple[str, str], ...]
    """All else that the run was made of, but for its seed."""
    seed: int
    returns: dict[int, float]
    """By environment step."""


@dataclass(frozen=True)
class Group:
    """Runs that differ by nothing but their seed."""

    task: str
    algo: str
    label: str
    seeds: list[int]
    steps: np.ndarray
    returns: Float[np.ndarray, "seed step"]


def read_curve(path: Path) -> Curve:
    """The evaluations of a run folder."""
    folder = RunFolder(path)
    config = folder.read_config()
    try:
        rows = read_progress(read_file(folder.progress).decode())
        returns = {int(row["step"] or 0): row["eval_return"] for row in rows}
        algo, hyperparameters, run = config["algo"], dict(config["hyperparameters"]), dict(config["run"])
        hyperparameters |= {"num_envs": run.get("num_envs"), "env_arg": run.get("env_arg", [])}
        task, seed = str(config["env"]), int(run["seed"])
    except (KeyError, TypeError, ValueError) as error:
        raise BisacError(f"{path} is not a run folder of this bisac: {error!r}.") from error
    if (name := variant(algo, hyperparameters)) not in COLOURS:
        raise BisacError(f"{path} is of an algorithm that this bisac does not know: '{algo}'.")
    known = {step: value for step, value in returns.items() if value is not None}
    if not known:
        raise BisacError(f"{path} has no evaluation yet; wait for its first.")
    settings = tuple(sorted((name, str(value)) for name, value in hyperparameters.items()))
    return Curve(path, task, name, settings, seed, known)


def variant(algo: str, hyperparameters: dict[str, Any]) -> str:
    """The name under which an algorithm has a colour: two of them have one for a variant too."""
    if algo == "bisac" and hyperparameters.get("refinement") == "correction":
        return "bisac-correction"
    if algo == "sac" and hyperparameters.get("critic") == "vdn-a":
        return "sac-vdn-a"
    return algo


def find_runs(paths: tuple[Path, ...]) -> list[Path]:
    """The run folders among the arguments and below them."""
    found = []
    for path in paths:
        below = [
            config.parent for config in sorted(path.rglob("config.json")) if (config.parent / "progress.csv").exists()
        ]
        if not below:
            raise BisacError(f"there is no run folder at {path} or below it.")
        found += below
    return sorted(set(found))


def grouped(curves: list[Curve]) -> list[Group]:
    """Seeds of the same setup together, at the steps that all of them were evaluated at."""
    groups = []
    by_setup = sorted(curves, key=lambda c: (c.task, list(COLOURS).index(c.algo), c.settings, c.seed))
    for (task, algo), same in groupby(by_setup, key=lambda c: (c.task, c.algo)):
        setups = [list(members) for _, members in groupby(same, key=lambda c: c.settings)]
        for members in setups:
            seeds = [curve.seed for curve in members]
            if len(set(seeds)) < len(seeds):
                names = " and ".join(str(c.path) for c in members if seeds.count(c.seed) > 1)
                raise BisacError(f"{names} are of the same seed and setup; a band needs each seed once: leave one out.")
            steps = sorted(set.intersection(*(set(curve.returns) for curve in members)))
            if not steps:
                raise BisacError(
                    f"the runs of {algo} on {task} were never evaluated at the same step; draw them apart."
                )
            returns = np.array([[curve.returns[step] for step in steps] for curve in members])
            label = LABELS[algo] + _difference(members[0], [others[0] for others in setups])
            groups.append(Group(task, algo, label, seeds, np.array(steps), returns))
    return groups


def _difference(curve: Curve, setups: list[Curve]) -> str:
    """What tells this setup of an algorithm from its others."""
    differing = sorted({name for other in setups for name, value in set(other.settings) ^ set(curve.settings)})
    own = dict(curve.settings)
    return "".join(f", {name.replace('_', ' ')} {own.get(name, 'unset')}" for name in differing)


def statistic_of(returns: Float[np.ndarray, "*n seed step"], statistic: Statistic) -> Float[np.ndarray, "*n step"]:
    """Over seeds."""
    cut = returns.shape[-2] // 4 if statistic == "iqm" else 0
    return np.sort(returns, axis=-2)[..., cut : returns.shape[-2] - cut, :].mean(axis=-2)


def band(
    returns: Float[np.ndarray, "seed step"],
    statistic: Statistic,
    confidence: float,
    seed: int = 0,
    resamples: int = 2000,
) -> tuple[Float[np.ndarray, "step"], Float[np.ndarray, "step"]]:
    """Percentile-bootstrap confidence interval of the statistic, resampling seeds."""
    count = len(returns)
    if count < 2:
        raise BisacError("a band needs at least two seeds: one says nothing of how much they differ.")
    index = np.random.default_rng(seed).integers(count, size=(resamples, count))
    drawn = statistic_of(returns[index], statistic)
    low, high = np.quantile(drawn, [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0], axis=0)
    return low, high


@dataclass(frozen=True)
class Curves(PaperFigure):
    """Learning curves of runs or sweeps: mean or interquartile mean over seeds, with confidence bands, per task.

    RUN is a run folder or a folder of them at any depth, such as runs/ or a sweep's. Runs that differ by nothing but
    their seed are one line; setups of one algorithm share its colour. A line of one seed gets no band.
    """

    runs: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN")] = ()
    """Run folders, or folders that hold some."""
    statistic: Statistic = "mean"
    """Over seeds: the mean, or the interquartile mean."""
    confidence: float = 0.95
    """Of the band, by bootstrap over seeds."""

    def __post_init__(self):
        require(self, "between 0 and 1", lambda v: 0.0 < v < 1.0, "confidence")

    def make(self, tell: Tell) -> Made:
        """Gather, then draw."""
        if not self.runs:
            raise BisacError("'bisac figure curves' needs one RUN or more: run folders, or folders that hold some.")
        tell("reading runs")
        groups = grouped([read_curve(path) for path in find_runs(self.runs)])
        numbers, summary = [], []
        bands = [band(g.returns, self.statistic, self.confidence) if len(g.seeds) > 1 else None for g in groups]
        for group, limits in zip(groups, bands, strict=True):
            middle = statistic_of(group.returns, self.statistic)
            numbers.append(
                dataclasses.asdict(group)
                | {self.statistic: middle, "low": limits and limits[0], "high": limits and limits[1]}
            )
            last = f"{group.task}, {group.label}: {middle[-1]:,.1f} at step {group.steps[-1]:,}"
            if limits:
                summary.append(f"{last}, {limits[0][-1]:,.1f} to {limits[1][-1]:,.1f} ({len(group.seeds)} seeds)")
            else:
                summary.append(f"{last} (1 seed, so no band)")
        return Made({"statistic": self.statistic, "groups": numbers}, self._draw(groups, bands), summary)

    def _draw(self, groups: list[Group], bands: list[tuple[np.ndarray, np.ndarray] | None]) -> dict[str, bytes]:
        tasks = sorted({group.task for group in groups})
        columns = min(3, len(tasks))
        rows = -(-len(tasks) // columns)
        labels = dict.fromkeys(group.label for group in groups)
        styles = _line_styles(groups)
        with drawing(max(3.6, 2.9 * columns), 2.3 * rows + 0.3 + 0.16 * len(labels) / columns) as figure:
            panels = figure.subplots(rows, columns, squeeze=False).ravel()
            for axes in panels[len(tasks) :]:
                axes.set_visible(False)
            for axes, task in zip(panels, tasks, strict=False):
                for group, limits in zip(groups, bands, strict=True):
                    if group.task == task:
                        look = {"color": COLOURS[group.algo], "ls": styles[group.label], "label": group.label}
                        if limits:
                            axes.fill_between(group.steps, *limits, color=look["color"], alpha=0.18, lw=0)
                        marker = "o" if len(group.steps) == 1 else ""
                        axes.plot(group.steps, statistic_of(group.returns, self.statistic), marker=marker, **look)
                axes.set(title=task, xlabel="environment steps")
                axes.xaxis.set_major_formatter(thousands)
                axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}".replace("-", "\N{MINUS SIGN}"))
            for axes in panels[::columns]:
                axes.set_ylabel("return per episode")
            handles = {
                text: line for axes in panels for line, text in zip(*axes.get_legend_handles_labels(), strict=True)
            }
            figure.legend(
                list(handles.values()),
                list(handles),
                loc="outside lower center",
                ncols=min(len(labels), 2 * columns - (columns > 1)),
            )
            return rendered(figure)


def _line_styles(groups: list[Group]) -> dict[str, Any]:
    """A setup's line style: its algorithm's, and for further setups of it one that no algorithm of the figure has."""
    styles: dict[str, Any] = {}
    for algo in dict.fromkeys(group.algo for group in groups):
        labels = sorted({group.label for group in groups if group.algo == algo})  # the plain label comes first
        styles |= {label: LINE_STYLES[algo] if i == 0 else (0, (1.0 + i, 1.0)) for i, label in enumerate(labels)}
    return styles
