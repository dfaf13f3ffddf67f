"""How fast learning on the device is: beside its own updates alone, eight seeds beside eight processes, and compiling.

`make bench-device` runs this, where Brax is installed. What counts are ratios: the two sides of each take turns.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import MappingProxyType
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
    seed_rounds: int = 3
    """Turns of the runs side by side, and of those as processes."""
    backends: tuple[str, ...] = ("spring", "generalized")
    """Of Brax's hopper, whose programs are compiled."""


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


def many_seeds(options: Options) -> dict[str, list[float]]:
    """Return steps a second of all runs together, side by side in one process and as processes, of each round."""
    words = ["classic/pendulum", "--algo", "sac", "--critic-norm", "none", "--hidden", "64", "64"]
    words += ["--steps", str(options.steps), "--eval-every", str(options.steps), "--checkpoint-every", "0"]
    total, free = options.seeds * options.steps, sorted(os.sched_getaffinity(0))

    def pinned(folder: str, seed: int) -> None:
        core = free.pop()
        _train(*words, "--out", f"{folder}/p{seed}", "--seed", str(seed), before=["taskset", "-c", str(core)])
        free.append(core)

    def apart(folder: str) -> None:
        with ThreadPoolExecutor(cores()) as pool:
            list(pool.map(lambda seed: pinned(folder, seed), range(options.seeds)))

    found: dict[str, list[float]] = {"one process": [], "a process each": []}
    with tempfile.TemporaryDirectory() as warm:  # compiled programs are kept
        _train(*words, "--out", f"{warm}/runs", "--seeds", "0:2")
        pinned(warm, 0)
    for _ in range(options.seed_rounds):
        with tempfile.TemporaryDirectory() as folder:
            together = ["--out", f"{folder}/seeds", "--seeds", f"0:{options.seeds}"]
            found["one process"].append(total / _seconds(lambda: _train(*words, *together)))  # noqa: B023
            found["a process each"].append(total / _seconds(lambda: apart(folder)))
    return found


def compiling(backend: str) -> tuple[float, float]:
    """Return the seconds of a short run of Brax's hopper: with nothing compiled before, and once more."""
    words = ["brax/hopper", "--env-arg", f"backend={backend}", "--algo", "sac", "--num-envs", "8"]
    words += ["--steps", "320", "--learning-starts", "160", "--eval-every", "320", "--eval-episodes", "1"]
    with tempfile.TemporaryDirectory() as folder:
        cache = {"XDG_CACHE_HOME": f"{folder}/cache"}  # where a user's are kept
        first, again = (
            _seconds(lambda: _train(*words, "--out", f"{folder}/{name}", environment=cache))  # noqa: B023
            for name in ("first", "again")
        )
    return first, again


def _train(*words: str, before: Sequence[str] = (), environment: Mapping[str, str] = MappingProxyType({})) -> None:
    command = [*before, sys.executable, "-m", "bisac", "train", *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | dict(environment))


def spread(values: list[float], digits: int) -> str:
    """Return the median, and the range it lies in."""
    return f"{median(values):,.{digits}f} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


def main() -> None:
    """Measure, and print."""
    options = tyro.cli(Options)
    tune_process()
    for name, source in (("classic/pendulum", "classic/pendulum"), ("no physics", NoPhysics())):
        print(f"{name}: steps over updates alone {spread(over_the_update(source, options.rounds), 2)}", flush=True)
    found = many_seeds(options)
    ratios = [one / each for one, each in zip(*found.values(), strict=True)]
    told = ", ".join(f"{name} {spread(values, 0)}" for name, values in found.items())
    print(f"{options.seeds} seeds, steps a second: {told}; ratio {spread(ratios, 2)}", flush=True)
    for backend in options.backends:
        first, again = compiling(backend)
        print(f"a run of 320 steps of brax/hopper, {backend}: {first:.0f} s, compiled before {again:.0f} s", flush=True)


if __name__ == "__main__":
    main()
