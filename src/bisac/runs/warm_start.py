"""Starting from what another run has learned: its networks, what it saw of observations, and its memory if wanted.

Optimisers begin anew, and so do schedules of learning rates and delays: they count this run's updates. TD3's delay
goes on where it was, which is one update sooner or later.
"""

import dataclasses
from functools import cached_property
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from bisac.algos import Algorithm, algorithm_name
from bisac.algos.delay import Delay
from bisac.algos.learner import Learner
from bisac.algos.soft import Soft
from bisac.collect import replay as replay_memory
from bisac.collect.learning import Learning
from bisac.collect.scaling import Scaling
from bisac.errors import BisacError
from bisac.runs.checkpoint.checkpoints import find_checkpoints
from bisac.runs.checkpoint.contents import Learned, load_learned
from bisac.runs.settings import Settings
from bisac.storage import leaf_names
from bisac.types import Spec

Tree = TypeVar("Tree")


class WarmStart:
    """What a new run takes over from the run that its settings name, which is read when it is first needed."""

    def __init__(self, algo: Algorithm[Any], settings: Settings):
        self._algo, self._settings = algo, settings
        self._where = f"--init {settings.init}"

    @cached_property
    def _learned(self) -> Learned:
        path = self._settings.init
        assert path is not None
        if path.is_file():
            raise BisacError(f"{self._where} is a file: a policy without its critics; a run folder is needed.")
        checkpoint = find_checkpoints(path)[-1]
        if not checkpoint.run["updates"]:
            raise BisacError(f"{self._where}: that run has not learned anything yet.")
        return load_learned(checkpoint, self._settings.with_replay)

    def rows(self, num_envs: int, capacity: int) -> int:
        """Return how many rows of the other run's memory the new one begins with: the newest that fit."""
        memory = self._learned.memory if self._settings.with_replay else None
        return 0 if memory is None else min(len(memory.reward), capacity) // num_envs * num_envs

    def check_fits(self, spec: Spec, fresh: Learning) -> None:
        """Refuse a run whose networks are of other shapes than `fresh`, which are those of the new run."""
        learned, ours = self._learned, algorithm_name(self._algo)
        if (theirs := algorithm_name(learned.algo)) != ours:
            raise BisacError(f"{self._where} is a run of {theirs}; a run of {ours} cannot start from it.")
        if (learned.spec.obs_dim, learned.spec.action_dim) != (spec.obs_dim, spec.action_dim):
            raise BisacError(f"{self._where} was trained on {learned.spec.sizes}, which does not fit {spec.sizes}.")
        for name in ("activation", "decomposition"):  # what networks compute beside their shapes
            there, here = getattr(learned.algo, name, None), getattr(self._algo, name, None)
            if there != here:
                raise BisacError(f"{self._where} has other networks: --{name} is {there} there and {here} here.")
        if self._settings.with_replay and learned.memory is None:
            raise BisacError(f"--with-replay: {ours} learns from fresh rollouts, and so has no memory to take over.")
        there, here = ((tree.agent, tree.scaling.observations, tree.scaling.returns) for tree in (learned, fresh))
        for place, (theirs, ours) in _shapes(there, here).items():
            if theirs != ours:
                raise BisacError(
                    f"{self._where} has other networks: {place} is {theirs} there and {ours} here; give this run the "
                    f"same settings of networks and normalisation."
                )

    def __call__(self, fresh: Learning, num_envs: int) -> Learning:
        """Return what a new run's learning holds when it starts from the other's."""
        learned = jax.tree.map(jnp.copy, (self._learned.agent, self._learned.scaling))
        old = dict(jax.tree.leaves_with_path(learned[0], is_leaf=_is_part))
        agent = jax.tree.map_with_path(lambda path, new: _taken(new, old.get(path)), fresh.agent, is_leaf=_is_part)
        if isinstance(self._algo, Soft):
            agent = self._algo.at_own_temperature(agent)
        scaling = Scaling(learned[1].observations, learned[1].returns, fresh.scaling.running)
        replay, memory = fresh.replay, self._learned.memory
        if replay is not None and memory is not None and (held := self.rows(num_envs, replay.capacity)):
            replay = replay_memory.filled(replay, jax.tree.map(lambda leaf: leaf[len(leaf) - held :], memory))
        return dataclasses.replace(fresh, agent=agent, scaling=scaling, replay=replay)


def _is_part(node: Any) -> bool:
    return isinstance(node, Learner | Delay)


def _taken(new: Any, old: Any) -> Any:
    """Return a part of an agent with what was learned elsewhere in it; what counts updates begins anew."""
    if isinstance(new, Delay):
        return new
    if not isinstance(new, Learner):
        return _with_leaves(new, old)
    model, moments, average = _with_leaves((new.model, new.moments, new.average), (old.model, old.moments, old.average))
    return Learner(model, new.opt_state, moments, average)


def _with_leaves(new: Tree, old: PyTree[Any]) -> Tree:
    """Return the arrays of `old` in the tree `new`, which keeps what is no array, such as exploration's noise."""
    return jax.tree.unflatten(jax.tree.structure(new), jax.tree.leaves(old))


def _shapes(there: PyTree[Any], here: PyTree[Any]) -> dict[str, tuple[str, str]]:
    """Return what stands where in either tree, in words, but what counts updates: optimisers and delays."""
    one, other = ({name: str(leaf.shape) for name, leaf in _named(tree)} for tree in (there, here))
    return {name: (one.get(name, "missing"), other.get(name, "missing")) for name in {**one, **other}}


def _named(tree: PyTree[Any]) -> list[tuple[str, Any]]:
    named = zip(leaf_names(tree), jax.tree.leaves(tree), strict=True)
    return [(name.partition(".")[2], leaf) for name, leaf in named if not {"opt_state", "delay"} & {*name.split(".")}]
