"""Real processes killed at random moments, and between two writes; as a script, a process that kills itself."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

from processes import SUPPORT, Work, command, flags

sys.path.insert(0, str(SUPPORT))

from faults import faulty_disk
from outcomes import Outcome
from short_hopper import HOPPER, ShortHopper
from small_runs import SETTINGS, VARIANTS, Crash, fingerprint

import bisac
from bisac import cli


def work_of(folder, settings):
    """One run of the short Hopper."""
    return Work(folder, ["train", HOPPER, "--out", folder, *flags(settings)], ["resume", folder])


def kill_campaign(folder, kills):
    """SIGKILL at random moments, and in the middle of a save, of every algorithm."""
    rng, equal, survived, inside = random.Random(0), 0, 0, 0
    runs = [(name, envs) for name in VARIANTS for envs in (1, 3)]
    bisac.train(HOPPER, out=folder / "endings", verbose=False, **SETTINGS, **VARIANTS["sac"])
    assert len(ShortHopper.ended) == 2
    for name, envs in runs:
        settings = SETTINGS | VARIANTS[name] | {"num_envs": envs}
        where = folder / f"{name}-{envs}".replace(" ", "")
        where.mkdir()
        with (where / "log").open("w") as log:
            work_of(where / "straight", settings).finish(log)
            moments = [rng.uniform(0, 4) for _ in range(kills)]
            survived += work_of(where / "random", settings).survive(moments, log)
            inside += killed_in_saves(
                work_of(where / "saving", settings), [rng.randrange(20, 90) for _ in range(kills)], log
            )
        equal += fingerprint(where / "random") == fingerprint(where / "straight")
        equal += fingerprint(where / "saving") == fingerprint(where / "straight")
        print(f"{name}, {envs} environments: {survived} kills, {inside} in a save; {equal} runs equal", flush=True)
    lost = 2 * len(runs) - equal
    result = f"resumed; {equal} of {2 * len(runs)} runs end equal, bit for bit, to those never interrupted"
    yield Outcome(
        "process killed (SIGKILL) at a random moment, every algorithm, 1 and 3 environments, on Hopper with falls and "
        "time limits", survived, result, lost,
    )  # fmt: skip
    yield Outcome("process killed between two writes of its start, log or save, the same runs", inside, "as above")


def killed_in_saves(work, calls, log):
    """Let processes kill themselves at the n-th call that changes a file, then one finish; returns the kills."""
    for nth in calls:
        environment = command()["env"] | {"BISAC_TEST_CALL": str(nth), "BISAC_TEST_FOLDER": str(work.folder)}
        words = work.go_on if work.begun else work.begin
        process = subprocess.run(
            [sys.executable, __file__, *map(str, words)], env=environment, stdout=log, stderr=log, check=False
        )
        assert process.returncode == -signal.SIGKILL
    work.finish(log)
    return len(calls)


def killed_process():
    """What `killed_in_saves` starts."""

    def fails(nth):
        if nth == int(os.environ["BISAC_TEST_CALL"]):
            os.kill(os.getpid(), signal.SIGKILL)

    with faulty_disk(Path(os.environ["BISAC_TEST_FOLDER"]), fails, Crash):
        sys.exit(cli.run(sys.argv[1:]))


if __name__ == "__main__":
    killed_process()
