"""Where environments are stepped: in this process, in processes of their own, or in EnvPool's threads."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from bisac.envs.host.worker import Step
from bisac.errors import BisacError
from bisac.types import Spec

BackendName = Literal["sync", "async", "envpool"]

Replay = tuple[np.ndarray, float] | None
"""The observation and the return that an episode led to when it was repeated; None where it could not be."""


class Steps(NamedTuple):
    """What a step of all environments gave: a row each."""

    obs: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    infos: Sequence[Mapping[str, Any]] | None = None
    """What each environment told with a step that ended its episode, else nothing; None where none can be asked."""


@runtime_checkable
class Backend(Protocol):
    """Copies of an environment that never reset themselves. Floats are float32."""

    spec: Spec

    def reset(self, indices: list[int], seeds: list[int]) -> np.ndarray:
        """Begin an episode in these environments, and return their first observations."""
        ...

    def step(self, actions: np.ndarray) -> Steps:
        """Act in all environments, in the environment's own units."""
        ...

    def replay(self, seeds: list[int], actions: list[np.ndarray]) -> list[Replay]:
        """Bring each environment back into the episode of its seed and actions."""
        ...

    def close(self) -> None:
        """Close the environments."""
        ...


def stack_steps(results: list[Step], spec: Spec) -> Steps:
    """Return the environments' steps as arrays."""
    obs, reward, terminated, truncated, infos = zip(*results, strict=True)
    flags = np.array(terminated), np.array(truncated)
    return Steps(stack_observations(obs, spec), np.array(reward, np.float32), *flags, infos)


def stack_observations(observations: Sequence[np.ndarray], spec: Spec) -> np.ndarray:
    """Return the environments' observations as rows of an array; refuse those that are not what the space says."""
    for obs in observations:
        if obs.shape != (spec.obs_dim,):
            raise BisacError(
                f"{spec.env_id} gave an observation of shape {obs.shape}; its observation space has {spec.obs_dim} "
                f"numbers. The environment must be mended."
            )
    return np.stack(observations)
