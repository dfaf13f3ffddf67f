"""How long runs may take, before any was measured: a guess from the operations of an update.

It must not know of runs on disk: what those took is measured, not guessed.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from bisac.algos import OffPolicy
from bisac.sweeps.plan import PlannedRun
from bisac.types import Spec, Transition

RATE = 60e9
"""Operations a second that a training run gets out of a core of a present-day server."""
OVERHEAD = 1.5e-3
"""Seconds a step for all that is not the update: the environment, the dispatch, evaluations."""
START = 10.0
"""Seconds until a run's first step: imports, environments, compiling."""


def guess_seconds(runs: Iterable[PlannedRun], specs: Mapping[str, Spec], slots: int, cores: int) -> float:
    """Guess the seconds until all runs are complete, within a factor of two or so."""
    runs = list(runs)
    updates = {(run.env, run.contestant): run for run in runs}
    costs = {key: OVERHEAD + _operations(run, specs[run.env]) / (RATE * cores) for key, run in updates.items()}
    each = [START + run.settings.steps * costs[run.env, run.contestant] for run in runs]
    return max(sum(each) / max(1, slots), *each)


def _operations(run: PlannedRun, spec: Spec) -> float:
    """Count the floating-point operations a step; an on-policy update has few enough to leave them out."""
    algo = run.algorithm
    if not isinstance(algo, OffPolicy):
        return 0.0
    key = jax.eval_shape(lambda: jax.random.key(0))
    state = jax.eval_shape(lambda k: algo.init(spec, k), key)
    obs, action, scalar = _shapes(algo.batch_size, (spec.obs_dim,), (spec.action_dim,), ())
    batch = Transition(obs, action, scalar, scalar, obs)
    lowered = jax.jit(lambda *parts: algo.update(*parts)).lower(state, batch, key)
    return float((lowered.cost_analysis() or {}).get("flops", 0.0)) * algo.utd


def _shapes(batch: int, *sizes: tuple[int, ...]) -> Iterator[Any]:
    """Give stand-ins for arrays: only their shapes are needed."""
    return (jax.ShapeDtypeStruct((batch, *size), jnp.float32) for size in sizes)
