"""Seconds to a return: ours, Stable-Baselines3's SAC, SBX's SAC and CrossQ, a core each.

`make bench-return` builds the peers' environment and runs this; run again, it goes on where it stopped. Every race is a
process of its own, pinned to a core, with nothing compiled before. A peer is stopped when it has taken 1.2 times as
long as the ratio that we aim at says, and told as "at least". A ratio is of races with the same seed, for all of one
seed should run on one machine. The readings go to results/returns, the table into docs/performance.md.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import deque
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import tyro
from measuring import context, described, panels, prose, splice
from rich.console import Console
from rich.markdown import Markdown

HERE = Path(__file__).parent
PEERS = HERE.parent / ".venv-peers" / "bin" / "python"

GOALS = {"HalfCheetah-v5": 4_000.0, "Hopper-v5": 2_000.0, "Walker2d-v5": 2_000.0}
OURS = {"sac-fast": "bisac: SAC, fast preset", "sac": "bisac: SAC"}
LONGEST = 1_800.0
"""Seconds after which one of ours is stopped."""
MARGIN = 1.2


class Peer(NamedTuple):
    """Another library's algorithm, and how many times our seconds we want it to take."""

    label: str
    aim: float
    envs: tuple[str, ...] = tuple(GOALS)


PEERS_RACED = {
    "sbx-sac": Peer("SBX: SAC", 5.0),
    "sbx-crossq-256": Peer("SBX: CrossQ, 256-256", 2.0),
    "sbx-crossq": Peer("SBX: CrossQ, as it ships", 2.0),
    "sb3-sac": Peer("SB3: SAC", 8.0),
    "sbx-sac-cool": Peer("SBX: SAC, alpha from 0.1", 5.0, ("HalfCheetah-v5",)),
    "sb3-sac-cool": Peer("SB3: SAC, alpha from 0.1", 8.0, ("HalfCheetah-v5",)),
}
LABELS = OURS | {name: peer.label for name, peer in PEERS_RACED.items()}
FASTEST = "sac-fast"
"""The one of ours that the peers are compared with."""


@dataclass(frozen=True)
class Options:
    """What to race."""

    seeds: int = 3
    """Seeds of each contestant, from 0."""
    cores: tuple[int, ...] = tuple(sorted(os.sched_getaffinity(0)))
    """Cores to race on, one race on each at a time."""
    env: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Race on this task only; may be repeated."""
    table: bool = False
    """Only write the table from what is there."""
    readings: Path = HERE.parent / "results" / "returns"
    """The folder of the races' readings."""
    out: Path = HERE.parent / "docs"
    """The folder of performance.md and returns.png."""


class Race(NamedTuple):
    """One contestant, task and seed."""

    name: str
    env: str
    seed: int

    def path(self, readings: Path) -> Path:
        """Where its readings lie."""
        return readings / self.env / self.name / f"seed{self.seed}.json"


def main(options: Options) -> None:
    """Race, then tell."""
    console, envs = Console(), options.env or tuple(GOALS)
    if not options.table:
        for seed in range(options.seeds):  # peers are stopped by what ours took, so ours go first
            run_all([Race(name, env, seed) for env in envs for name in OURS], options, console)
            peers = [Race(n, env, seed) for n, peer in PEERS_RACED.items() for env in envs if env in peer.envs]
            run_all(peers, options, console)
    results = read_all(options)
    text = table(results)
    console.print(Markdown(text))
    chart(results, options.out / "returns.png")
    splice(options.out / "performance.md", "returns", text)


def run_all(races: list[Race], options: Options, console: Console) -> None:
    """Those races that have not been run, one on each core at a time."""
    waiting = [race for race in races if not race.path(options.readings).exists()]
    cores = deque(options.cores)
    with ThreadPoolExecutor(len(options.cores)) as pool:
        futures = {pool.submit(run, race, cores, options): race for race in waiting}
        for future in as_completed(futures):
            race, found = futures[future], future.result()
            end = f"{found['seconds']:.0f} s, step {found['step']:,}" if found["evaluations"] else "nothing"
            console.print(f"{race.env} {race.name} seed {race.seed}: {'reached' if found['reached'] else 'not'}, {end}")


def run(race: Race, cores: deque[int], options: Options) -> dict[str, Any]:
    """One race, on a core of its own."""
    ours = race.name in OURS
    script = HERE / "contestants" / ("race_ours.py" if ours else "race_peers.py")
    fastest = Race(FASTEST, race.env, race.seed)
    limit = LONGEST if ours else MARGIN * PEERS_RACED[race.name].aim * read_all(options)[fastest]["seconds"]
    words = [race.name, race.env, str(race.seed), str(GOALS[race.env]), str(limit)]
    core = cores.popleft()
    try:
        with tempfile.TemporaryDirectory() as folder:
            answered = subprocess.run(
                ["taskset", "-c", str(core), sys.executable if ours else PEERS, script, *words],
                env=os.environ | {"JAX_COMPILATION_CACHE_DIR": folder},
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                check=True,
            ).stdout
    finally:
        cores.append(core)
    answers = [json.loads(line) for line in answered.splitlines()]
    evaluations = [answer for answer in answers if "step" in answer]
    last = evaluations[-1] if evaluations else {"seconds": limit, "wall_seconds": limit, "step": 0}
    found = {
        "reached": answers[-1]["reached"],
        "seconds": last["seconds"] if answers[-1]["reached"] else max(limit, last["seconds"]),
        "wall_seconds": last["wall_seconds"],
        "step": last["step"],
        "goal": GOALS[race.env],
        "evaluations": evaluations,
        "context": context([answers[0]["versions"]]),
    }
    path = race.path(options.readings)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")
    return found


def read_all(options: Options) -> dict[Race, dict[str, Any]]:
    """All readings that there are."""
    races = (Race(name, env, seed) for env in GOALS for name in LABELS for seed in range(options.seeds))
    return {race: json.loads(path.read_text()) for race in races if (path := race.path(options.readings)).exists()}


def table(results: dict[Race, dict[str, Any]]) -> str:
    """Seconds and steps to each return, and the ratios to our fastest, in Markdown."""
    heads = [f"{env} {goal:,.0f}" for env, goal in GOALS.items()]
    lines = [f"| contestant | {' | '.join(heads)} |", "|---|" + "---|" * len(GOALS)]
    for name, label in LABELS.items():
        lines.append(f"| {label} | {' | '.join(cell(results, name, env) for env in GOALS)} |")
    return "\n".join([*lines, "", prose(f"Raced {_when_and_where(results)}.")])


def _when_and_where(results: dict[Race, dict[str, Any]]) -> str:
    """The context of the newest race, with the days and the versions of all."""
    contexts = sorted((found["context"] for found in results.values()), key=lambda told: told["date"])
    versions = {name: number for told in contexts for name, number in told["versions"].items()}
    days = " and ".join(dict.fromkeys(told["date"] for told in contexts))
    return described({**contexts[-1], "date": days, "versions": versions})


def cell(results: dict[Race, dict[str, Any]], name: str, env: str) -> str:
    """Median seconds, the median ratio to our fastest of the same seed, median steps, and the seeds that got there."""
    found = {race.seed: reading for race, reading in results.items() if race[:2] == (name, env)}
    if not found:
        return ""
    seconds, reached = (
        statistics.median(f["seconds"] for f in found.values()),
        sum(f["reached"] for f in found.values()),
    )
    stopped = [f["seconds"] for f in found.values() if not f["reached"]]  # each would have taken longer
    least = "at least " if any(time <= seconds for time in stopped) or 2 * reached <= len(found) else ""
    ratio = statistics.median(f["seconds"] / results[Race(FASTEST, env, seed)]["seconds"] for seed, f in found.items())
    times = "" if name == FASTEST else f" ({ratio:.1f} times)"
    steps = statistics.median(f["step"] for f in found.values())
    taken = f"{steps / 1000:.0f}k steps" if steps else "not one evaluation's steps"
    return f"{least}{seconds:.0f} s{times}, {taken}, {reached} of {len(found)}"


def chart(results: dict[Race, dict[str, Any]], path: Path) -> None:
    """Return over seconds of every race."""
    palette = ("#b2182b", "#d55e00", "#0072b2", "#009e73", "#56b4e9", "#555555", "#88aacc", "#aaaaaa")
    colours = dict(zip(LABELS, palette, strict=True))
    with panels(path, [f"{env}: {goal:,.0f}" for env, goal in GOALS.items()], 3, (10, 3.8)) as axes:
        for axis, (env, goal) in zip(axes, GOALS.items(), strict=True):
            axis.axhline(goal, color="0.8", lw=1)
            for race, found in results.items():
                if race.env == env:
                    rows = found["evaluations"]
                    label = LABELS[race.name] if race.seed == 0 else None
                    seconds, returns = [r["seconds"] for r in rows], [r["eval_return"] for r in rows]
                    axis.plot(seconds, returns, color=colours[race.name], lw=1, label=label)
            axis.set(xscale="log", xlabel="seconds of training on one core", ylabel="return of five episodes")
        figure = axes[0].figure
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)


if __name__ == "__main__":
    main(tyro.cli(Options))
