"""EnvPool: its own simulators of some tasks, stepped by threads outside Python."""

from typing import Any

import numpy as np

from bisac.envs.host.backends import Replay, Steps
from bisac.envs.task import Task
from bisac.errors import BisacError, did_you_mean, reason
from bisac.types import Spec


class EnvPoolBackend:
    """EnvPool's environment of an id, which Gymnasium must have as well: evaluation runs there.

    Its environments are seeded once, when they are made; so episodes cannot be repeated one by one.
    """

    def __init__(self, task: Task, num_envs: int):
        self._envpool = _import_envpool()
        self._task, self._num_envs, self._pool = task, num_envs, None
        if not isinstance(task.source, str):
            raise BisacError("--backend envpool takes the id of an EnvPool environment, not a function.")
        self._id = task.source
        if self._id not in (known := self._envpool.list_all_envs()):
            raise BisacError(f"EnvPool has no environment '{self._id}'{did_you_mean(self._id, known)}")
        try:
            env = task.make()
        except BisacError as error:
            raise BisacError(
                f"--backend envpool evaluates in Gymnasium's environment of the same id: {error}"
            ) from error
        self.spec = task.spec(env)
        env.close()
        if (theirs := self._spec()) != self.spec:
            raise BisacError(f"EnvPool's '{self._id}' is not Gymnasium's: {theirs} and {self.spec}.")

    def reset(self, indices: list[int], seeds: list[int]) -> np.ndarray:
        """Begin an episode in these environments; the seeds count when the first begins in all."""
        if self._pool is None:
            int32 = [seed & 0x7FFFFFFF for seed in seeds]
            self._pool = self._envpool.make_gymnasium(
                self._id, num_envs=self._num_envs, seed=int32, **self._task.kwargs
            )
        obs, _ = self._pool.reset(np.array(indices, np.int32))
        return np.array(obs, np.float32)

    def step(self, actions: np.ndarray) -> Steps:
        """Act in all environments."""
        assert self._pool is not None, "reset comes first"
        obs, reward, terminated, truncated, _ = self._pool.step(actions)
        return Steps(np.array(obs, np.float32), np.array(reward, np.float32), terminated, truncated)

    def replay(self, seeds: list[int], actions: list[np.ndarray]) -> list[Replay]:  # noqa: ARG002
        """Return None for each environment: EnvPool cannot repeat an episode."""
        return [None] * self._num_envs

    def close(self) -> None:
        """Close the environments."""
        if self._pool is not None:
            self._pool.close()

    def _spec(self) -> Spec:
        """Return sizes and action bounds as EnvPool has them."""
        try:
            spec = self._envpool.make_spec(self._id, **self._task.kwargs)
        except Exception as error:  # whatever its bindings make of arguments that they do not take
            args = ", ".join(self._task.args)
            raise BisacError(f"EnvPool cannot make '{self._id}' with {args}: {reason(error)}.") from error
        actions = spec.action_space
        low, high = (tuple(float(v) for v in np.asarray(bound, np.float32)) for bound in (actions.low, actions.high))
        return Spec(self._id, int(np.prod(spec.observation_space.shape)), low, high, self._task.args)


def _import_envpool() -> Any:
    try:
        import envpool  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise BisacError("--backend envpool needs EnvPool; in bisac's folder: pip install '.[envpool]'.") from error
    return envpool
