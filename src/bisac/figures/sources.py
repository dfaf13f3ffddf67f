"""Checkpoints as the figures see them: a critic with marginals, its temperature, and states that the run has been in.

No figure reads a checkpoint in another way, and none needs its environment.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bisac.algos import algorithm_name
from bisac.algos.projecting import Projecting
from bisac.algos.soft import SoftState
from bisac.errors import BisacError
from bisac.figures.divided import Divided, divided, division
from bisac.ops.quadrature import Grid
from bisac.runs.checkpoint.checkpoints import find_checkpoints
from bisac.runs.checkpoint.contents import Learned, load_learned
from bisac.types import Transition


@dataclass(frozen=True)
class Source:
    """One checkpoint of a run whose critic has marginals."""

    path: Path
    """The checkpoint's folder."""
    step: int
    """Environment steps that the run had taken."""
    learned: Learned
    """All that the checkpoint holds of what was learned."""
    label: str
    """What tells it from the other checkpoints of the figure."""

    @property
    def state(self) -> SoftState:
        """What the algorithm learned."""
        return self.learned.agent

    @property
    def critic(self) -> Divided:
        """The online critics, with their marginals."""
        critic = divided(self.state)
        assert critic is not None
        return critic

    @property
    def alpha(self) -> Float[Array, ""]:
        """The temperature, in the same units as the critics' values."""
        return self.state.alpha

    @property
    def unit(self) -> float:
        """How many of the environment's rewards a unit of the critics' values is."""
        return 1.0 if self.state.reward_unit is None else float(self.state.reward_unit)

    @property
    def action_dim(self) -> int:
        """The number of action dimensions."""
        return self.learned.spec.action_dim

    @property
    def training_grid(self) -> Grid:
        """The quadrature that the run projects with; the usual one where it does not project."""
        algo = self.learned.algo
        if not isinstance(algo, Projecting):
            return Grid()
        return Grid(algo.integration_bound, algo.simpson_intervals, algo.chebyshev_points)

    def batch(self, count: int, seed: int) -> Transition:
        """Return transitions drawn from the replay memory without repetition, as the networks see them."""
        memory = self.learned.memory
        assert memory is not None
        held = len(memory.reward)
        if count > held:
            raise BisacError(f"{self.path} remembers {held:,} states; ask for at most that many, not {count:,}.")
        index = np.random.default_rng(seed).choice(held, count, replace=False)
        return self.learned.scaling.batch(Transition(*(jnp.asarray(rows[index]) for rows in memory)))

    def describe(self) -> dict[str, Any]:
        """Return which checkpoint this is, for the figure's numbers."""
        algo = self.learned.algo
        return {
            "label": self.label,
            "checkpoint": self.path,
            "env": self.learned.spec.env_id,
            "algo": algorithm_name(algo),
            "decomposition": division(self.critic),
            "step": self.step,
            "alpha": self.unit * float(self.alpha),
        }


def read_sources(runs: tuple[Path, ...], command: str) -> list[Source]:
    """Read every checkpoint that a figure's arguments stand for: a run folder stands for all that it keeps."""
    if not runs:
        raise BisacError(f"'bisac figure {command}' needs one RUN or more: run folders or checkpoints' folders.")
    found = [(run, checkpoint) for run in runs for checkpoint in find_checkpoints(run)]
    learned = [load_learned(checkpoint) for _, checkpoint in found]
    critics = [_divided(run, one) for (run, _), one in zip(found, learned, strict=True)]
    tasks = sorted({one.spec.env_id for one in learned})
    if len(tasks) > 1:
        raise BisacError(f"the runs are of different tasks ({', '.join(tasks)}); draw a figure for each.")
    sizes = sorted({one.spec.action_dim for one in learned})
    if len(sizes) > 1:
        raise BisacError(f"the runs have {' and '.join(map(str, sizes))} action dimensions; draw a figure for each.")
    labels = [
        f"{division(critic)}, {checkpoint.step:,} steps" for critic, (_, checkpoint) in zip(critics, found, strict=True)
    ]
    if len(set(labels)) < len(labels):
        labels = [f"{label} ({run.name})" for label, (run, _) in zip(labels, found, strict=True)]
    return [
        Source(checkpoint.path, checkpoint.step, one, label)
        for (_, checkpoint), one, label in zip(found, learned, labels, strict=True)
    ]


def _divided(run: Path, learned: Learned) -> Divided:
    """Refuse what has no marginals."""
    critic = divided(learned.agent) if isinstance(learned.agent, SoftState) else None
    if critic is None:
        raise BisacError(
            f"{run} has no marginals (its algorithm is {algorithm_name(learned.algo)}); train bisac, a Forward SAC, "
            f"or sac with --critic vdn-a."
        )
    return critic
