"""How the cost of ours grows: with action dimensions, batch, width, Simpson intervals, environments and updates a step.

`make bench-scaling` runs this on one core. Each setting is varied alone around Hopper's sizes; all sizes of SAC and
Bidirectional SAC take turns. It writes scaling.json and scaling.png to the folder given, and its tables into the
performance.md there. The growth named is the slope of log cost over log size in the upper half of the sizes, where
fixed costs matter least: 1 is linear.
"""

import dataclasses
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from growth import chart, markdown, medians
from measuring import bar, context, publish, turns
from rich.console import Console
from rich.progress import Progress

os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])  # before JAX starts its threads
sys.path.append(str(Path(__file__).parent / "contestants"))
from bare import compiled_updates, sizes  # noqa: E402
from ours import VDN_A  # noqa: E402

from bisac.algos import OffPolicy, make_algorithm  # noqa: E402
from bisac.collect.collector import Request  # noqa: E402
from bisac.collect.dispatch import open_collector  # noqa: E402
from bisac.machine import tune_process  # noqa: E402

OBS, ACT = 11, 3
SMALL = {"learning_starts": 100, "replay_size": 10_000}
ALGOS: dict[str, OffPolicy[Any]] = {
    "SAC": make_algorithm("sac", SMALL),
    "Bidirectional SAC": make_algorithm("bisac", SMALL | {"epsilon_half_life": "none"}),  # every update projects
    "Bidirectional SAC, VDN-a": make_algorithm("bisac", SMALL | VDN_A),
}


@dataclasses.dataclass(frozen=True)
class Options:
    """How long to measure."""

    rounds: int = 5
    """Rounds of turns."""
    seconds: float = 0.4
    """Seconds of a turn, and at least three calls."""
    quick: bool = False
    """One round of short turns at few sizes, to see that all runs; the figures go to build/bench."""
    out: Path = Path(__file__).parents[1] / "docs"
    """The folder of scaling.json, scaling.png and performance.md."""


@dataclasses.dataclass(frozen=True)
class Sweep:
    """A setting, the sizes it takes, and what is then run."""

    title: str
    cost: str
    """What is measured, in milliseconds."""
    values: tuple[float, ...]
    runner: Callable[[OffPolicy[Any], Any], Callable[[], object]]
    algos: tuple[str, ...] = tuple(ALGOS)


def update(algo: OffPolicy[Any], act: int = ACT, **settings: Any) -> Callable[[], object]:
    """One update of the algorithm with these settings."""
    return compiled_updates(dataclasses.replace(algo, **settings), sizes(OBS, act), 1)[0]


def loop(algo: OffPolicy[Any], envs: int = 1, **settings: Any) -> Callable[[], object]:
    """One step of the training loop in so many environments, past the warm-up."""
    request = Request(dataclasses.replace(algo, **settings).settled(), (0,), envs, 10**9, eval_episodes=1)
    collector = open_collector("Hopper-v5", (), request)
    state = collector.start()

    def step() -> None:
        nonlocal state
        state, _ = collector.advance(state, 10**9)

    while state.updates < 1:
        step()
    return step


SWEEPS = (
    Sweep("action dimensions", "update", (1, 2, 4, 8, 17, 38), lambda algo, value: update(algo, act=value)),
    Sweep("batch", "update", (64, 128, 256, 512, 1024, 2048), lambda algo, value: update(algo, batch_size=value)),
    Sweep("width", "update", (64, 128, 256, 512, 1024), lambda algo, value: update(algo, hidden=(value, value))),
    Sweep(
        "Simpson intervals",
        "update",
        (100, 200, 400, 800, 1600),
        lambda algo, value: update(algo, simpson_intervals=value),
        ("Bidirectional SAC, VDN-a",),
    ),
    Sweep("environments", "step of all", (1, 2, 4, 8, 16), lambda algo, value: loop(algo, envs=value)),
    Sweep("updates per step", "step", (0.25, 0.5, 1, 2, 4, 8), lambda algo, value: loop(algo, utd=value)),
)
MEMORY = (256, 512, 1024, 2048)
"""Batches whose memory is asked for, at 38 action dimensions."""


def milliseconds(run: Callable[[], object], seconds: float) -> float:
    """Of one call."""
    begin, count = time.perf_counter(), 0
    while (spent := time.perf_counter() - begin) < seconds or count < 3:
        run()
        count += 1
    return 1e3 * spent / count


def measure(sweep: Sweep, options: Options, progress: Progress) -> dict[str, Any]:
    """All sizes of a sweep, in turns."""
    values = sweep.values[:2] if options.quick else sweep.values
    pairs = [(name, value) for name in sweep.algos for value in values]
    task = progress.add_task(f"{sweep.title}: compiling")
    runners = {pair: sweep.runner(ALGOS[pair[0]], pair[1]) for pair in progress.track(pairs, task_id=task)}
    for run in runners.values():
        run()
    times: dict[tuple[str, float], list[float]] = {pair: [] for pair in pairs}
    progress.update(task, description=sweep.title)
    for pair in progress.track(list(turns(pairs, options.rounds)), task_id=task):
        times[pair].append(milliseconds(runners[pair], options.seconds))
    readings = {name: {str(value): times[name, value] for value in values} for name in sweep.algos}
    growth = {
        name: slope(list(values), [medians(by_value)[v] for v in map(str, values)])
        for name, by_value in readings.items()
    }
    return {"title": sweep.title, "cost": sweep.cost, "milliseconds": readings, "growth": growth}


def slope(values: list[float], costs: list[float]) -> float:
    """Of log cost over log size, in the upper half."""
    upper = max(2, (len(values) + 1) // 2)
    return float(np.polyfit(np.log(values[-upper:]), np.log(costs[-upper:]), 1)[0])


def memory(batches: tuple[int, ...]) -> dict[str, dict[str, float]]:
    """Megabytes that an update needs beside its arguments at 38 dimensions."""

    def megabytes(algo: OffPolicy[Any], batch: int) -> float:
        _, program = compiled_updates(dataclasses.replace(algo, batch_size=batch), sizes(OBS, 38), 1)
        return program.memory_analysis().temp_size_in_bytes / 1e6

    return {name: {str(batch): megabytes(algo, batch) for batch in batches} for name, algo in ALGOS.items()}


def main(options: Options) -> None:
    """Measure, show and write."""
    tune_process()
    if options.quick:
        options = Options(1, 0.05, True, Path(__file__).parents[1] / "build" / "bench")
    console = Console()
    with bar(console) as progress:
        measured = [measure(sweep, options, progress) for sweep in SWEEPS]
    packages = {name: version(name) for name in ("jax", "gymnasium", "mujoco", "numpy")}
    results = {"context": context([packages]), "rounds": options.rounds, "seconds": options.seconds}
    results |= {"sweeps": measured, "memory": memory(MEMORY[:1] if options.quick else MEMORY)}
    publish("scaling", results, markdown(results), chart, options.out, console)


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
