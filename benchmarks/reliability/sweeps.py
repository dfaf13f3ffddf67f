"""Sweeps whose workers are killed, whose own process is, and whose Ray worker is."""

import random
import re
import time

import psutil
from outcomes import Outcome
from processes import PATIENCE, Work, flags, killed_rounds
from small_runs import TINY, fingerprint

SETTINGS = TINY | {"algo": "sac", "steps": 1500, "eval_every": 500, "eval_episodes": 1, "checkpoint_every": 250}

TOLD = {"local": "failed with exit code -9", "ray": "its worker was lost; it goes on elsewhere"}
"""What a sweep says of a process that was killed, by engine."""


def sweep_campaign(folder, kills, ray):
    """SIGKILL of a run's process under a sweep, and of the sweep's own; the same command goes on."""
    rng, place, rounds = random.Random(4), folder / "sweep", max(1, kills)

    def work(name, *more):
        words = ["sweep", "--env", "Pendulum-v1", "--seeds", "0:2", *flags(SETTINGS), *more, "--out", place / name]
        return Work(place / name, words, words)

    def ends(out):
        return [fingerprint(out / f"Pendulum-v1/sac/seed{seed}") for seed in range(2)]

    killed, runs, equal = killed_rounds(work, ends, rounds, 2, 4.0)
    result = f"runs saved themselves; gone on with, {equal} of {runs} end equal, bit for bit"
    yield Outcome("process of `bisac sweep` killed at a random moment", killed, result, runs - equal)
    for engine in ("local", *(["ray"] if ray else [])):
        yield _workers(engine, work, ends, rounds, rng)


def _workers(engine, work, ends, rounds, rng):
    """Kill what a sweep has trained: the run's process, or for Ray the worker that is its parent."""
    kills = told = equal = 0
    straight, said = work("straight").folder, ""
    for index in range(rounds):
        name = f"{engine}-{index}"
        swept, log_path = work(name, "--engine", engine), straight.with_name(f"{name}.log")
        with log_path.open("w") as log, swept.start(log) as process:
            swept.wait_for_life(process, rng.uniform(0, 2))
            kills += _kill_one(process.pid, "ray::work" if engine == "ray" else "bisac")
            process.wait(PATIENCE)
        output = log_path.read_text()
        told_of = re.search(rf"Pendulum-v1 sac seed \d: {TOLD[engine]}", output)
        told += bool(told_of)
        said = told_of[0] if told_of else said
        with log_path.open("a") as log:
            swept.finish(log)
        equal += sum(one == other for one, other in zip(ends(swept.folder), ends(straight), strict=True))
    print(f"workers under {engine}: {kills} kills, {told} told, {equal} of {2 * rounds} runs equal", flush=True)
    what = {"local": "a run's process killed under `bisac sweep`", "ray": "a Ray worker killed under `--engine ray`"}
    how = {"local": "told; the same command went on", "ray": "told; went on from its checkpoint on another worker"}
    result = f"{how[engine]}; {equal} of {2 * rounds} runs end equal, bit for bit"
    return Outcome(what[engine], kills, result, 2 * rounds - equal, kills - told, f"{said}." if said else "")


def _kill_one(parent, word):
    """Kill one of a sweep's processes whose command has a word in it, as soon as there is one."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and psutil.pid_exists(parent):
        for child in psutil.Process(parent).children(recursive=True):
            try:
                words = child.cmdline()
                if (words and words[0].startswith(word)) or (word in words and {"train", "resume"} & set(words)):
                    child.kill()
                    return 1
            except (psutil.NoSuchProcess, psutil.ZombieProcess):
                continue
        time.sleep(0.1)
    return 0
