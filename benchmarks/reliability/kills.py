"""Real processes killed at random moments, and between two writes; as a script, a process that kills itself."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

SUPPORT = Path(__file__).parents[2] / "tests" / "support"
sys.path.insert(0, str(SUPPORT))

from faults import faulty_disk  # noqa: E402
from short_hopper import HOPPER, ShortHopper  # noqa: E402
from small_runs import SETTINGS, VARIANTS, Crash, fingerprint  # noqa: E402

import bisac  # noqa: E402
from bisac import cli  # noqa: E402


def flags(settings):
    """Python's keywords as the command line's flags."""
    for name, value in settings.items():
        yield f"--{name.replace('_', '-')}"
        yield from map(str, value if isinstance(value, tuple) else (value,))


def command(*arguments):
    """A bisac process that can make the environment above."""
    path = os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])
    return {"args": [sys.executable, "-m", "bisac", *map(str, arguments)], "env": os.environ | {"PYTHONPATH": path}}


def killed_run(folder, settings, moments, log):
    """Train in processes that are killed, `moments` seconds after their run folder shows life; returns the kills."""
    kills = 0
    for moment in [*moments, None]:
        begun = (folder / "config.json").exists()
        arguments = ["resume", folder] if begun else ["train", HOPPER, "--out", folder, *flags(settings)]
        before = _age(folder)
        with subprocess.Popen(**command(*arguments), stdout=log, stderr=log) as process:
            if moment is None:
                assert process.wait(300) == 0
                break
            deadline = time.monotonic() + 300
            while process.poll() is None and _age(folder) == before and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(moment)
            if process.poll() is None:
                process.kill()
                kills += 1
            process.wait()
    return kills


def _age(folder):
    """Changes whenever a process writes a config or a checkpoint."""
    watched = [folder / "config.json", *(folder / "checkpoints").glob("*")]
    return [(path.name, path.stat().st_mtime_ns) for path in watched if path.exists()]


def kill_campaign(folder, kills):
    """SIGKILL at random moments, and in the middle of a save."""
    rng, equal, survived, inside = random.Random(0), 0, 0, 0
    runs = [(name, envs) for name in VARIANTS for envs in (1, 3)]
    bisac.train(HOPPER, out=folder / "endings", verbose=False, **SETTINGS, **VARIANTS["sac"])
    assert len(ShortHopper.ended) == 2
    for name, envs in runs:
        settings = SETTINGS | VARIANTS[name] | {"num_envs": envs}
        where = folder / f"{name}-{envs}".replace(" ", "")
        where.mkdir()
        with (where / "log").open("w") as log:
            assert killed_run(where / "straight", settings, [], log) == 0
            survived += killed_run(where / "random", settings, [rng.uniform(0, 4) for _ in range(kills)], log)
            inside += killed_in_saves(where / "saving", settings, [rng.randrange(20, 90) for _ in range(kills)], log)
        equal += fingerprint(where / "random") == fingerprint(where / "straight")
        equal += fingerprint(where / "saving") == fingerprint(where / "straight")
        print(f"{name}, {envs} environments: {survived} kills, {inside} in a save; {equal} runs equal", flush=True)
    result = f"resumed, {equal} of {2 * len(runs)} runs end equal, bit for bit, to those never interrupted"
    yield "process killed (SIGKILL) at a random moment, on Hopper with falls and time limits", survived, result
    yield "process killed between two writes of its start, log or save", inside, "as above"


def killed_in_saves(folder, settings, calls, log):
    """Train in processes that kill themselves at the n-th call that changes a file; returns the kills."""
    kills = 0
    for nth in [*calls, 10**9]:
        begun = (folder / "config.json").exists()
        arguments = ["resume", folder] if begun else ["train", HOPPER, "--out", folder, *flags(settings)]
        environment = command()["env"] | {"BISAC_TEST_CALL": str(nth), "BISAC_TEST_FOLDER": str(folder)}
        process = subprocess.run(
            [sys.executable, __file__, *map(str, arguments)],
            env=environment,
            stdout=log,
            stderr=log,
            check=False,
        )
        assert process.returncode == (-signal.SIGKILL if nth < 10**9 else 0)
        kills += process.returncode < 0
    return kills


def killed_process():
    """What `killed_in_saves` starts."""

    def fails(nth):
        if nth == int(os.environ["BISAC_TEST_CALL"]):
            os.kill(os.getpid(), signal.SIGKILL)

    with faulty_disk(Path(os.environ["BISAC_TEST_FOLDER"]), fails, Crash):
        sys.exit(cli.run(sys.argv[1:]))


if __name__ == "__main__":
    killed_process()
