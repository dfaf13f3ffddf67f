"""A soak: one run that is stopped and gone on with again and again, beside one that never is, and their memory."""

import itertools
import random
import signal
import time
from pathlib import Path

import psutil
from outcomes import Outcome
from processes import PATIENCE, Work, flags
from small_runs import fingerprint

from bisac.plotting.style import drawing, rendered
from bisac.runs.checkpoint.checkpoints import find_checkpoints

SETTINGS = {
    "algo": "sac", "num_envs": 1, "hidden": (32, 32), "batch_size": 64, "replay_size": 20_000, "learning_starts": 500,
    "eval_every": 5000, "eval_episodes": 2, "checkpoint_every": 1000,
}  # fmt: skip
FOREVER = 10**9
"""Steps that no soak comes to the end of."""
ENDINGS = (signal.SIGTERM, signal.SIGKILL, signal.SIGINT)
"""How a process is ended, in turns."""


def soak_campaign(folder, minutes, every, picture):
    """Interrupt a run every so many seconds for so many minutes; then let another take as many steps at one go."""
    place, rng = folder / "soak", random.Random(6)
    place.mkdir()
    begin = ["train", "Pendulum-v1", *flags(SETTINGS)]

    def work(name, steps):
        out = place / name
        return Work(out, [*begin, "--steps", steps, "--out", out], ["resume", out, "--steps", steps])

    soaked, memory, interruptions = work("soaked", FOREVER), {"interrupted": [], "never interrupted": []}, 0
    start, endings = time.monotonic(), itertools.cycle(ENDINGS)
    with (place / "log").open("w") as log:
        while time.monotonic() - start < 60 * minutes:
            with soaked.start(log) as process:
                soaked.wait_for_life(process, 0.0)
                _watch(process, memory["interrupted"], start, every * rng.uniform(0.5, 1.5))
                process.send_signal(next(endings))
                process.wait(PATIENCE)
            interruptions += 1
        # Further than it came: a run that was for longer has no last evaluation where it was broken off.
        steps = (find_checkpoints(soaked.folder)[-1].step // 1000 + 1) * 1000
        for name, part in (("soaked", "interrupted"), ("straight", "never interrupted")):
            with work(name, steps).start(log) as process:
                _watch(process, memory[part], start, PATIENCE * 60)
                assert process.wait() == 0, place / "log"
    equal = fingerprint(place / "soaked") == fingerprint(place / "straight")
    picture.write_bytes(_drawn(memory))
    growth = _growth(memory["never interrupted"])
    print(f"soak: {interruptions} interruptions, {steps:,} steps, equal {equal}, growth {growth:+.1f} MB", flush=True)
    result = (
        f"{steps:,} steps in {minutes:g} minutes; {'ends equal, bit for bit' if equal else 'DIFFERS'}; the memory "
        f"of the run that went on at one go grew by {growth:+.1f} MB in its second half ([drawn]({picture.name}))"
    )
    what = f"soak: one run stopped (SIGTERM, SIGKILL, SIGINT in turns) about every {every:g} s and resumed"
    yield Outcome(what, interruptions, result, lost=not equal)


def _watch(process, samples, start, seconds):
    """Note how much memory a process has, once a second, until it ends or so many seconds are over."""
    until = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < until:
        try:
            samples.append((time.monotonic() - start, psutil.Process(process.pid).memory_info().rss / 2**20))
        except psutil.NoSuchProcess:
            return
        time.sleep(1.0)


def _growth(samples):
    """Return by how many MB the memory grew in the second half: the mean of its last tenth less that of its middle."""
    values = [value for _, value in samples]
    tenth = max(1, len(values) // 10)
    middle = values[len(values) // 2 : len(values) // 2 + tenth]
    return sum(values[-tenth:]) / tenth - sum(middle) / len(middle)


def _drawn(memory) -> bytes:
    with drawing(6.5, 2.6) as figure:
        axes = figure.subplots()
        for (name, samples), colour in zip(memory.items(), ("#d55e00", "#0072b2"), strict=True):
            first = samples[0][0]
            axes.plot([(at - first) / 60 for at, _ in samples], [value for _, value in samples], ".", ms=1.5,
                      color=colour, label=name)  # fmt: skip
        axes.set(xlabel="minutes", ylabel="memory of the process (MB)", ylim=(0, None))
        axes.legend(loc="lower right", markerscale=4)
        return rendered(figure, ["png"])["png"]


def picture_path(page: Path) -> Path:
    """Return where the picture of a page's soak lies."""
    return page.with_name(f"{page.stem}-soak.png")
