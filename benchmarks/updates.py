"""Seconds to a return by updates a step, on one core and on two: what the fast preset was chosen by.

`make bench-updates` measures what a thousand steps take on this machine, which should be quiet; how many steps a return
takes is read from the runs that are kept. The readings go into docs/updates.json, the table into docs/performance.md.
"""

import csv
import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from measuring import bar, context, described, prose, splice, turns
from returns import GOALS
from rich.console import Console
from rich.markdown import Markdown

sys.path.insert(0, str(Path(__file__).parent / "contestants"))

from meter import versions

ROOT = Path(__file__).parents[1]
RUNS = {
    1.0: "normalised-256/{env}/sac",
    0.5: "updates-per-step/{env}/utd2-delay3",
    0.25: "updates-per-step/{env}/utd4-delay3",
    0.125: "updates-per-step/{env}/utd8-delay3",
}
"""Where the curves of each update-to-data ratio are kept: the actor learns at every third update in all of them."""

CORES = (1, 2)
WARM, STEPS = 1_400, 3_000
"""Steps after which speed counts, and for how many."""


@dataclass(frozen=True)
class Options:
    """How long to measure."""

    rounds: int = 3
    """Turns of each ratio, task and number of cores."""
    out: Path = ROOT / "docs"
    """The folder of performance.md and updates.json."""


def main(options: Options) -> None:
    """Measure, then tell."""
    console, cores = Console(), sorted(os.sched_getaffinity(0))
    cells = [(utd, env, n) for utd in RUNS for env in GOALS for n in CORES if n <= len(cores)]
    found: dict[tuple[float, str, int], list[float]] = {cell: [] for cell in cells}
    with bar(console) as progress:
        task = progress.add_task("steps", total=len(cells) * options.rounds)
        for cell in turns(cells, options.rounds):
            utd, env, n = cell
            command = ["taskset", "-c", ",".join(map(str, cores[:n])), sys.executable, __file__, "time", str(utd), env]
            found[cell].append(float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))
            progress.advance(task)
    rates = [{"utd": u, "env": e, "cores": n, "seconds": seconds} for (u, e, n), seconds in found.items()]
    results = {"context": context([versions()]), "rates": rates}
    text = markdown(results)
    console.print(Markdown(text))
    (options.out / "updates.json").write_text(json.dumps(results, indent=1) + "\n")
    splice(options.out / "performance.md", "updates", text)


def timed(utd: float, env: str) -> float:
    """Seconds that a thousand steps take, once everything is compiled."""
    from bisac.algos import make_algorithm
    from bisac.collect.collector import Request
    from bisac.collect.dispatch import open_collector
    from bisac.machine import tune_process

    tune_process()
    algo = make_algorithm("sac", {"utd": utd}).settled()
    request = Request(algo, (0,), algo.usual_envs(), 10**9, eval_episodes=1)
    with closing(open_collector(env, (), request)) as collector:
        state = collector.start()
        while state.step < WARM:
            state, _ = collector.advance(state, WARM)
        began, first = time.perf_counter(), state.step
        while state.step < WARM + STEPS:
            state, _ = collector.advance(state, WARM + STEPS)
        return 1000.0 * (time.perf_counter() - began) / (state.step - first)


def steps_until(curve: Path, goal: float) -> tuple[int, bool]:
    """The step of the second of two evaluations in a row at the goal, or the last one; and whether there was one."""
    before, step = False, 0
    with curve.open() as file:
        for row in csv.DictReader(file):
            step, now = int(row["step"]), float(row["eval_return"]) >= goal
            if before and now:
                return step, True
            before = now
    return step, False


def cell(results: dict[str, Any], utd: float, env: str, cores: int) -> str:
    """The median seconds to the return, and how many seeds had it."""
    seconds = [
        statistics.median(r["seconds"])
        for r in results["rates"]
        if (r["utd"], r["env"], r["cores"]) == (utd, env, cores)
    ]
    curves = sorted((ROOT / "results" / RUNS[utd].format(env=env)).glob("seed*/progress.csv"))
    if not seconds or not curves:
        return ""
    ends = sorted((not reached, step) for step, reached in (steps_until(curve, GOALS[env]) for curve in curves))
    missed, step = ends[(len(ends) - 1) // 2]  # of an even number the lower one: what never came cannot be averaged
    came = sum(not missed for missed, _ in ends)
    return f"{'> ' if missed else ''}{seconds[0] * step / 1000:.0f} s ({came} of {len(ends)})"


def markdown(results: dict[str, Any]) -> str:
    """The table: a row a ratio, a column a task and number of cores."""
    columns = [(env, n) for env in GOALS for n in sorted({r["cores"] for r in results["rates"]})]
    heads = [f"{env} {GOALS[env]:,.0f}, {n} core{'s' * (n > 1)}" for env, n in columns]
    lines = [f"| updates a step | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for utd in RUNS:
        name = f"1/{1 / utd:.0f}" if utd < 1 else "1"
        lines.append(f"| {name} | {' | '.join(cell(results, utd, env, n) for env, n in columns)} |")
    return "\n".join([*lines, "", prose(f"Measured {described(results['context'])}.")])


if __name__ == "__main__":
    if sys.argv[1:2] == ["time"]:
        print(timed(float(sys.argv[2]), sys.argv[3]))
    else:
        main(tyro.cli(Options, description=__doc__))
