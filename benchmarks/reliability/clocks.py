"""Clocks that jump, and runs that go on with another number of cores."""

import os
import random
import re
import shutil
import subprocess
import time

from kills import work_of
from outcomes import Outcome
from probe_envs import Counter
from processes import command
from small_runs import SETTINGS, SHORT, SMALL, VARIANTS, dying_at, fingerprint

import bisac


def clock_campaign(folder):
    """A system clock that jumps, mostly backwards, at every look at it, in a run that dies and goes on."""
    place, rng, equal, times, looks = folder / "clocks", random.Random(5), 0, 12, 0
    bisac.train(Counter, out=place / "straight", **SMALL, **SHORT)
    expected, clock, clock_ns = fingerprint(place / "straight"), time.time, time.time_ns

    def jumping():
        nonlocal looks
        looks += 1
        return clock() - rng.choice([0, 3600, 86400 * 365, clock() - 1, -3600])

    for index in range(times):
        time.time, time.time_ns = jumping, lambda: int(jumping() * 1e9)
        try:
            with dying_at(7 * index + 5):
                bisac.train(Counter, out=place / "run", **SMALL, **SHORT)
            bisac.resume(place / "run", env=Counter, verbose=False)
        finally:
            time.time, time.time_ns = clock, clock_ns
        equal += fingerprint(place / "run") == expected
        shutil.rmtree(place / "run")
    print(f"clocks: {times} runs, {looks} jumps, {equal} equal", flush=True)
    result = f"{looks:,} looks at the clock; resumed, {equal} of {times} runs end equal"
    yield Outcome(
        "system clock that jumps, back to 1970 too, at every look; the run dies once", times, result, times - equal
    )


def cores_campaign(folder):
    """Begun on one core and gone on with on two, and the other way round: told, and the end compared."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return
    place, equal, told, times, said = folder / "cores", 0, 0, 0, ""
    place.mkdir()
    with (place / "log").open("w") as log:
        for name in ("sac", "bisac", "ppo"):
            settings = SETTINGS | VARIANTS[name] | {"num_envs": 3}
            for begin, end in ((cores[:1], cores[:2]), (cores[:2], cores[:1])):
                work = work_of(place / f"{name}-{len(begin)}", settings)
                straight = work_of(place / f"{name}-{len(begin)}-straight", settings)
                _on(begin, straight.begin, log)
                half = [*work.begin, "--steps", "300"]
                _on(begin, half, log)
                output = _on(end, [*work.go_on, "--steps", settings["steps"]], log)
                found = re.search(r"not the same machine[^\n]*", output)
                said = said or (found[0] if found else "")
                times, told = times + 1, told + bool(found)
                equal += fingerprint(work.folder) == fingerprint(straight.folder)
    print(f"cores: {times} runs, {told} told, {equal} equal", flush=True)
    result = f"{told} told; {equal} of {times} end equal all the same"
    yield Outcome("run resumed on another number of cores (1 then 2, 2 then 1)", times, result, 0, times - told, said)


def _on(cores, words, log):
    """Run a command on some of the cores; returns what it says."""
    process = subprocess.run(
        **command(*words), preexec_fn=lambda: os.sched_setaffinity(0, cores), stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    log.write(process.stdout)
    assert process.returncode == 0, process.stdout
    return process.stdout
