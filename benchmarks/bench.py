"""Side by side: bisac, Stable-Baselines3, SBX, rejax and the machine's own limit.

`make bench` builds the peers' environment and runs this. Contestants of a group are processes that all stand ready and
take turns, a slice of time each, the order rotated every round; what counts are the ratios within a round. It writes
performance.json and performance.png to the folder given, and the tables into performance.md there.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

import tyro
from measuring import bar, context, publish, turns
from report import chart, markdown
from rich.console import Console
from rich.progress import Progress

HERE = Path(__file__).parent
PEERS = HERE.parent / ".venv-peers" / "bin" / "python"

What = Literal["steps", "updates"]
GroupName = Literal["hopper", "humanoid", "pendulum", "ppo", "start"]


@dataclass(frozen=True)
class Options:
    """How long to measure, and what."""

    rounds: int = 7
    """Rounds of turns."""
    seconds: float = 2.0
    """Seconds of a turn of training; one of bare updates takes half as long."""
    only: tyro.conf.UseAppendAction[tuple[GroupName, ...]] = ()
    """Measure this group only, and leave the others' results as they are; may be repeated."""
    quick: bool = False
    """Two rounds of short turns on one core, to see that all runs: the figures mean little, and go to build/bench."""
    out: Path = HERE.parent / "docs"
    """The folder of performance.json, performance.png and performance.md."""


@dataclass(frozen=True)
class Contestant:
    """A script, and what it is to run."""

    label: str
    script: str
    name: str
    does: tuple[What, ...] = ("steps", "updates")
    """What can be asked of it: training steps, updates alone."""

    def command(self, env: str, replay: int) -> list[str]:
        """The process that it is."""
        python = PEERS if self.script == "peers" else sys.executable
        return [str(python), str(HERE / "contestants" / f"{self.script}.py"), self.name, env, str(replay)]


SB3_SAC, SBX_SAC = Contestant("SB3: SAC", "peers", "sb3-sac"), Contestant("SBX: SAC", "peers", "sbx-sac")
REJAX_SAC = Contestant("rejax: SAC", "peers", "rejax-sac", ("steps",))
SAC, NORMALISED = Contestant("bisac: SAC, classic", "ours", "sac"), Contestant("bisac: SAC", "ours", "sac-batch")
BISAC = Contestant("bisac: Bidirectional SAC", "ours", "bisac")
DEVICE = Contestant("bisac: SAC, on the device", "ours", "sac-device", ("steps",))
VDN_A = Contestant("bisac: Bidirectional SAC, VDN-a", "ours", "bisac-vdn-a")
LIMITS = tuple(
    Contestant(f"limit ({label})", "limit", name, ("updates",)) for label, name in (("XLA", "xla"), ("BLAS", "numpy"))
)
ALL_SAC = (SB3_SAC, SBX_SAC, SAC, NORMALISED, BISAC, VDN_A)
PENDULUM_SAC = (SB3_SAC, SBX_SAC, REJAX_SAC, SAC, DEVICE, BISAC)
ALL_PPO = tuple(
    Contestant(f"{label}: PPO", script, name)
    for label, script, name in (("SB3", "peers", "sb3-ppo"), ("SBX", "peers", "sbx-ppo"), ("bisac", "ours", "ppo"))
)


@dataclass(frozen=True)
class Group:
    """Contestants that take turns."""

    name: GroupName
    env: str
    contestants: tuple[Contestant, ...]
    cores: tuple[int, ...] = (1, 2)
    replay: int = 1_000_000
    whats: tuple[What, ...] = ("steps",)
    topic: str = "steps"
    """Under which its steps are reported."""


GROUPS = (
    Group("hopper", "Hopper-v5", ALL_SAC + LIMITS, whats=("steps", "updates")),
    # A million transitions of Humanoid-v5 in each of the contestants would not fit into many a machine.
    Group("humanoid", "Humanoid-v5", ALL_SAC + LIMITS, replay=100_000, whats=("steps", "updates")),
    Group("pendulum", "Pendulum-v1", PENDULUM_SAC + LIMITS, cores=(1,), whats=("steps", "updates")),
    Group("ppo", "Hopper-v5", ALL_PPO, topic="ppo"),
)
KEEP_FREED = {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1)}
"""So that the limit does not pay glibc's page faults for results freed and allocated anew at each call."""
STARTERS, STARTS = (SB3_SAC, SBX_SAC, SAC, NORMALISED, BISAC), 3


@dataclass
class Worker:
    """A contestant's process."""

    command: str
    process: subprocess.Popen[str]
    errors: IO[bytes]
    versions: dict[str, str] = field(default_factory=dict)

    def answer(self) -> dict[str, Any]:
        """The next line it says."""
        assert self.process.stdout is not None
        if not (line := self.process.stdout.readline()):
            self.errors.seek(0)
            raise SystemExit(f"{self.command} failed:\n{self.errors.read().decode()[-2000:]}")
        return json.loads(line)

    def measure(self, what: What, seconds: float) -> dict[str, Any]:
        """A slice of so many seconds."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what} {seconds}\n")
        self.process.stdin.flush()
        return self.answer()


@contextmanager
def working(contestant: Contestant, env: str, replay: int, cores: int, cache: str) -> Iterator[Worker]:
    """A contestant's process on so many cores, which has taken its first training step."""
    pinned = sorted(os.sched_getaffinity(0))[:cores]
    environment = (
        os.environ | {"XDG_CACHE_HOME": cache, "TMPDIR": cache} | ({} if "steps" in contestant.does else KEEP_FREED)
    )
    command = contestant.command(env, replay)
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment,
            cwd=cache,  # MuJoCo leaves its log where it runs
            preexec_fn=lambda: os.sched_setaffinity(0, pinned),
        )
        worker = Worker(" ".join(command), process, errors)
        try:
            worker.versions = worker.answer()["versions"]
            yield worker
        finally:
            process.kill()
            process.communicate()


@dataclass
class Bench:
    """A run of the harness: its options, its bar, and what it has found."""

    options: Options
    progress: Progress
    cache: str
    found: list[dict[str, Any]] = field(default_factory=list)

    def add(self, what: str, env: str, cores: int, unit: str, readings: dict[str, list[float]], seen: Any) -> None:
        """One more measure."""
        rounds = {"rounds": self.options.rounds, "seconds": self.options.seconds}
        case = {"what": what, "env": env, "cores": cores, "unit": unit, "readings": readings}
        self.found.append(case | rounds | {"context": context(seen)})

    def run(self) -> None:
        """Measure all groups that are wanted, on as many cores as there are."""
        for group in GROUPS:
            for cores in group.cores[:1] if self.options.quick else group.cores:
                if self.wants(group.name) and cores <= len(os.sched_getaffinity(0)):
                    self.take_turns(group, cores)
        if self.wants("start"):
            self.start("Hopper-v5")

    def wants(self, name: GroupName) -> bool:
        """Whether a group is to be measured."""
        return not self.options.only or name in self.options.only

    def take_turns(self, group: Group, cores: int) -> None:
        """Measure a group on so many cores."""
        place = f"{group.name}, {cores} core{'s'[: cores - 1]}"
        with ExitStack() as stack:
            workers: dict[Contestant, Worker] = {}
            for contestant in self.progress.track(group.contestants, description=f"{place}: starting"):
                process = working(contestant, group.env, group.replay, cores, self.cache)
                workers[contestant] = stack.enter_context(process)
                workers[contestant].answer()  # warmed up
            seen = [worker.versions for worker in workers.values()]
            for what in group.whats:
                able = {c: worker for c, worker in workers.items() if what in c.does}
                peaks = {c.label: [worker.measure(what, 0.01)["peak_bytes"] / 1e6] for c, worker in able.items()}
                topic, unit = (group.topic, "env-steps/s") if what == "steps" else (what, "updates/s")
                self.add(topic, group.env, cores, unit, self.rates(what, able, f"{place}: {topic}"), seen)
                if group.name == "hopper" and cores == 1 and what == "steps":
                    self.add("memory", group.env, cores, "MB", peaks, seen)

    def rates(self, what: What, workers: dict[Contestant, Worker], title: str) -> dict[str, list[float]]:
        """Of all rounds, by contestant."""
        seconds = self.options.seconds if what == "steps" else self.options.seconds / 2
        found: dict[str, list[float]] = {contestant.label: [] for contestant in workers}
        for contestant in self.progress.track(list(turns(list(workers), self.options.rounds)), description=title):
            answer = workers[contestant].measure(what, seconds)
            found[contestant.label].append(answer["count"] / answer["seconds"])
        return found

    def start(self, env: str) -> None:
        """Seconds from the start of the command to the first training step, with empty caches and again."""
        times: dict[str, dict[str, list[float]]] = {
            what: {contestant.label: [] for contestant in STARTERS} for what in ("first start", "second start")
        }
        seen = []
        order = list(turns(STARTERS, min(STARTS, self.options.rounds)))
        for contestant in self.progress.track(order, description="start to first training step"):
            with tempfile.TemporaryDirectory() as cache:
                for readings in times.values():
                    begin = time.perf_counter()
                    with working(contestant, env, 1_000_000, 2, cache) as worker:
                        readings[contestant.label].append(time.perf_counter() - begin)
                        seen.append(worker.versions)
        for what, readings in times.items():
            self.add(what, env, 2, "s", readings, seen)


def main(options: Options) -> None:
    """Measure, show and write."""
    if not PEERS.exists():
        raise SystemExit("the peers are not installed; 'make bench' does it.")
    if options.quick:
        options = Options(2, 0.5, options.only, True, HERE.parent / "build" / "bench")
    console = Console()
    with tempfile.TemporaryDirectory() as cache, bar(console) as progress:
        bench = Bench(options, progress, cache)
        try:
            bench.run()
        finally:  # what was measured before an interruption counts
            if bench.found:
                results = merged(options.out / "performance.json", bench.found)
                publish("performance", results, markdown(results), chart, options.out, console)


def merged(path: Path, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What was measured now, and before that only what was not."""
    before = json.loads(path.read_text()) if path.exists() else []
    cases = {(case["what"], case["env"], case["cores"]): case for case in (*before, *found)}
    return list(cases.values())


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
