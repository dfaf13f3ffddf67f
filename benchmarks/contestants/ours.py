"""bisac as a contestant: the command that a user types, with a meter in the place of its display.

python ours.py NAME ENV REPLAY
"""

import sys
import tempfile
from collections.abc import Callable
from functools import cache
from typing import Any

from meter import LEARNING_STARTS, UPDATES, WARMED_UP, Meter

from bisac.display import run as console
from bisac.runs.events import Advanced, Event

FOREVER = 10**9
ROLLOUT = 2048
VDN_A = {
    "critic": "vdn-a", "critic_norm": "none", "spread": "std", "epsilon": 0.1, "epsilon_half_life": "none",
    "margin": "none",
}  # fmt: skip
"""Bidirectional SAC with the paper's critic, classic."""
CONTESTANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "sac": ("sac", {"critic_norm": "none"}),
    "sac-device": ("sac", {"critic_norm": "none", "num_envs": 1}),
    "sac-batch": ("sac", {"num_envs": 1}),
    "bisac": ("bisac", {"num_envs": 1, "epsilon_half_life": "none"}),  # so that every update projects
    "bisac-vdn-a": ("bisac", VDN_A),
    "ppo": ("ppo", {"rollout": ROLLOUT, "normalise_observations": False, "normalise_rewards": False}),
}


ON_DEVICE = {"Pendulum-v1": "classic/pendulum"}
"""The same task, compiled into the training step."""


class Metered:
    """A display that tells the meter of each step, and shows nothing."""

    def __init__(self, meter: Meter):
        self._meter, self._seen = meter, 0

    def __call__(self, event: Event) -> None:
        """Take note of steps."""
        if isinstance(event, Advanced):
            before, self._seen = self._seen, event.step
            self._meter.tick(event.step - before)

    def end(self) -> None:
        """Leave nothing behind."""


def main(name: str, env: str, replay: str) -> None:
    """Train until the harness has seen enough."""
    algo, settings = CONTESTANTS[name]
    env = ON_DEVICE[env] if name == "sac-device" else env
    if algo == "ppo":
        meter = Meter(ROLLOUT, 2 * ROLLOUT)
    else:
        meter = Meter(LEARNING_STARTS + 1, WARMED_UP, lambda: bare_updates(name, env))
        settings = settings | {"learning_starts": LEARNING_STARTS, "replay_size": replay}
    console.RunDisplay = lambda _: Metered(meter)  # pyright: ignore[reportAttributeAccessIssue]
    from bisac.__main__ import main as command  # now that the display is replaced

    with tempfile.TemporaryDirectory() as folder:
        settings |= {"out": folder, "overwrite": True, "checkpoint_every": 0, "eval_every": FOREVER, "steps": FOREVER}
        flags = [text for name, value in settings.items() for text in _flag(name.replace("_", "-"), value)]
        sys.argv = ["bisac", "train", env, "--algo", algo, *flags]
        command()


def _flag(name: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    return [f"--{name}", str(value)]


def bare_updates(name: str, env: str) -> int:
    """Update a few times, as the peers' `train` does; returns how often."""
    _compiled(name, env)()
    return UPDATES


@cache
def _compiled(name: str, env: str) -> Callable[[], None]:
    from bare import compiled_updates

    from bisac.algos import make_algorithm
    from bisac.envs.task import Task

    task, (algo, settings) = Task(env), CONTESTANTS[name]
    hyperparameters = {field: value for field, value in settings.items() if field != "num_envs"}
    made: Any = make_algorithm(algo, hyperparameters)
    return compiled_updates(made, task.spec(task.make()), UPDATES)[0]


if __name__ == "__main__":
    main(*sys.argv[1:])
