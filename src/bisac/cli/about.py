"""What `bisac list --algo NAME` tells: an algorithm in five lines, with the page to read on."""

import dataclasses
from typing import NamedTuple

from rich.markup import escape

from bisac.algos import REGISTRY
from bisac.presets import FAST, PAPER


class About(NamedTuple):
    """What a user wants to know before choosing an algorithm."""

    policy: str
    """What acts, and what it learns from."""
    when: str
    """When to choose it."""
    page: str
    """Where to read on."""


REPLAY = "learns from a replay memory"
ROLLOUTS = "learns from fresh rollouts"

ABOUT: dict[str, About] = {
    "bisac": About(
        f"an actor network; {REPLAY}",
        "where a far, narrow optimum may be worth more than the near one; it becomes sac as epsilon falls",
        "docs/algorithm.md#distilled-marginals-and-a-judge",
    ),
    "sac": About(
        f"an actor network; {REPLAY}",
        "for locomotion and most else: the least time a step, and nothing here is shown to learn faster",
        "docs/algorithm.md#normalised-critics",
    ),
    "forward-sac": About(
        f"the projection itself, computed from the critic; {REPLAY}",
        "where you study the projection by itself",
        "docs/algorithm.md#the-forward-kl-projection",
    ),
    "forward-sac-actor": About(
        f"an actor network that follows the projection; {REPLAY}",
        "where you study the forward direction with a policy that is cheap to ask",
        "docs/algorithm.md#the-forward-kl-projection",
    ),
    "ddpg": About(
        f"a deterministic actor, noise to explore; {REPLAY}",
        "where you need the baseline; td3 is its successor",
        "docs/algorithm.md#the-baselines",
    ),
    "td3": About(
        f"a deterministic actor, noise to explore; {REPLAY}",
        "where you need the baseline",
        "docs/algorithm.md#the-baselines",
    ),
    "mpo": About(
        f"an actor network; {REPLAY}",
        "where you compare with the relative of Forward SAC that samples",
        "docs/algorithm.md#mpo",
    ),
    "ppo": About(
        f"a Gaussian actor; {ROLLOUTS}",
        "where steps are cheap and many, and simplicity counts more than steps",
        "docs/algorithm.md#the-baselines",
    ),
    "a2c": About(
        f"a Gaussian actor; {ROLLOUTS}",
        "where you need the baseline; ppo is its successor",
        "docs/algorithm.md#the-baselines",
    ),
}
"""What to know of each algorithm of ours, by its name."""


def explained(name: str) -> str:
    """Return an algorithm in five lines; of a user's own, what its class tells."""
    kind = REGISTRY[name]
    lines = [f"[bold]{name}[/]{' ' * max(2, 12 - len(name))}{escape((kind.__doc__ or name).splitlines()[0])}"]
    if about := ABOUT.get(name):
        lines += [f"policy      {about.policy}", f"choose it   {about.when}"]
    presets = [f"--preset {preset}" for preset, table in (("fast", FAST), ("paper", PAPER)) if name in table]
    count = len(dataclasses.fields(kind))
    told = f"bisac train ENV --algo {name} --help  ({count} settings{''.join(f'; {each}' for each in presets)})"
    lines += [f"flags       {told}"]
    if about:
        lines += [f"page        {about.page}"]
    return "\n".join(lines)
