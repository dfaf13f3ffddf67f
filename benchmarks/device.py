"""How fast learning on the device is: beside its own updates alone, and eight seeds beside eight processes.

`make bench-device` runs this. What counts are ratios: the two sides of each take turns.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import tyro
from jaxtyping import Array

sys.path.insert(0, str(Path(__file__).parent / "contestants"))

from bare import compiled_updates

from bisac.algos import SAC
from bisac.collect.collector import Request
from bisac.collect.device import DeviceCollector
from bisac.envs.device.sources import device_task
from bisac.machine import cores, tune_process

STEPS = 256
"""Steps, and updates, of a turn."""


@dataclass(frozen=True)
class Options:
    """How long to measure."""

    rounds: int = 7
    """Turns of each side."""
    steps: int = 4000
    """Steps of each of the eight runs."""
    seeds: int = 8
    """Runs, side by side and as processes."""


class Still(NamedTuple):
    """A state of a task without physics."""

    obs: Array
    reward: Array
    done: Array


class NoPhysics:
    """As large as the pendulum, and nothing happens: what is left is the loop's own cost."""

    action_size = 1

    def reset(self, rng: Array) -> Still:
        """Begin."""
        return Still(jax.random.normal(rng, (3,)), jnp.zeros(()), jnp.zeros((), bool))

    def step(self, state: Still, action: Array) -> Still:
        """Reward the action, and stay."""
        return state._replace(reward=action[0])


def over_the_update(source: Any, rounds: int) -> list[float]:
    """Return steps a second over bare updates a second, at one update a step, of each round."""
    algo = SAC(critic_norm="none", learning_starts=STEPS).settled()
    task = device_task(source, ())
    assert task is not None
    collector = DeviceCollector(task, Request(algo, (0,), 1, 10**9, 1))
    updates = compiled_updates(algo, task.spec, STEPS)[0]
    state = collector.start()
    ratios = []
    for number in range(rounds + 2):

        def steps() -> None:
            nonlocal state
            until = state.step + STEPS
            while state.step < until:
                state, _ = collector.advance(state, until)
            jax.block_until_ready(state.parts)

        ratio = 1.0 / (_seconds(steps) / _seconds(updates))
        ratios += [ratio] if number > 1 else []  # the first have no updates, or compile
    return ratios


def _seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def many_seeds(options: Options) -> dict[str, float]:
    """Return steps a second of all runs together, side by side in one process and as processes, one a core."""
    words = ["train", "classic/pendulum", "--algo", "sac", "--critic-norm", "none", "--hidden", "64", "64"]
    words += ["--steps", str(options.steps), "--eval-every", str(options.steps), "--checkpoint-every", "0"]
    total, slots = options.seeds * options.steps, cores()

    def run(out: str, *more: str) -> None:
        command = [sys.executable, "-m", "bisac", *words, "--out", out, *more]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def processes(folder: str) -> None:
        free = sorted(os.sched_getaffinity(0))

        def pinned(seed: int) -> None:
            core = free.pop()
            command = [sys.executable, "-m", "bisac", *words, "--out", f"{folder}/p{seed}", "--seed", str(seed)]
            pin = ["taskset", "-c", str(core)]
            subprocess.run([*pin, *command], check=True, stdout=subprocess.DEVNULL)
            free.append(core)

        with ThreadPoolExecutor(slots) as pool:
            list(pool.map(pinned, range(options.seeds)))

    with tempfile.TemporaryDirectory() as folder:
        run(f"{folder}/warm", "--seeds", "0:2")  # compiled programs are kept
        together = _seconds(lambda: run(f"{folder}/seeds", "--seeds", f"0:{options.seeds}"))
        apart = _seconds(lambda: processes(folder))
    return {"one process": total / together, "a process each": total / apart, "ratio": apart / together}


def main() -> None:
    """Measure, and print."""
    options = tyro.cli(Options)
    tune_process()
    for name, source in (("classic/pendulum", "classic/pendulum"), ("no physics", NoPhysics())):
        ratios = over_the_update(source, options.rounds)
        print(f"{name}: steps over updates alone {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    print(f"{options.seeds} seeds: {json.dumps({k: round(v, 2) for k, v in many_seeds(options).items()})}")


if __name__ == "__main__":
    main()
