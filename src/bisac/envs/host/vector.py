"""A vector environment that the user has made: Gymnasium's own, or another that gives an episode's last observation.

Where episodes can be begun one by one, they are, each from its own seed, and so can be repeated. Where the environments
begin them by themselves in the same step, they tell the last observation in `info`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from bisac.envs.host.backends import Replay, Steps
from bisac.envs.task import Task, check_action_space, check_observation_space
from bisac.errors import BisacError
from bisac.layout import flattened, layout_of
from bisac.types import Spec


class VectorBackend:
    """The environments of a vector environment, which stays its owner's to close."""

    def __init__(self, task: Task, num_envs: int):
        assert isinstance(task.source, VectorEnv)
        self._envs, self._num_envs = task.source, num_envs
        name = self._envs.spec.id if self._envs.spec else type(self._envs.unwrapped).__name__
        self._begins_itself = _begins_itself(self._envs, name)
        observations, actions = self._envs.single_observation_space, self._envs.single_action_space
        box = check_action_space(actions, name)
        check_observation_space(observations, name)
        layout = layout_of(observations)
        if layout is None:
            raise BisacError(f"'{name}' has the observation space {observations}, which cannot be taken in batches.")
        self._layout, self._shape = layout, box.shape
        low, high = (tuple(float(v) for v in np.ravel(bound)) for bound in (box.low, box.high))
        is_vector = isinstance(observations, spaces.Box) and len(observations.shape) == 1
        self.spec = Spec(name, spaces.flatdim(observations), low, high, (), None if is_vector else layout)
        self._begun = False
        self._first = np.empty((num_envs, self.spec.obs_dim), np.float32)

    def reset(self, indices: list[int], seeds: list[int]) -> np.ndarray:
        """Begin an episode in these environments, unless they have done so by themselves."""
        if not self._begins_itself or not self._begun:
            each: list[int | None] = [None] * self._num_envs
            for index, seed in zip(indices, seeds, strict=True):
                each[index] = seed
            whole = len(indices) == self._num_envs
            options = None if whole else {"reset_mask": np.isin(np.arange(self._num_envs), indices)}
            self._first = self._flat(self._envs.reset(seed=each, options=options)[0])  # pyright: ignore[reportArgumentType]
            self._begun = True
        return self._first[indices]

    def step(self, actions: np.ndarray) -> Steps:
        """Act in all environments."""
        obs, reward, terminated, truncated, infos = self._envs.step(actions.reshape(self._num_envs, *self._shape))
        flat, told, ended = self._flat(obs), infos, np.flatnonzero(terminated | truncated).tolist()
        if self._begins_itself:
            self._first = flat.copy()
            told = infos.get("final_info", {})
            for index in ended:
                flat[index] = flattened(self._layout, _of(infos["final_obs"], index))
        each = [_told(told, index) if index in ended else {} for index in range(self._num_envs)]
        return Steps(flat, np.array(reward, np.float32), np.array(terminated), np.array(truncated), each)

    def replay(self, seeds: list[int], actions: list[np.ndarray]) -> list[Replay]:
        """Bring each environment back into the episode of its seed and actions; all of them arrive at the same step."""
        if self._begins_itself:
            return [None] * self._num_envs
        longest = max(map(len, actions))
        begins = [longest - len(taken) for taken in actions]
        replays: list[Replay] = [(first, 0.0) for first in self.reset(list(range(self._num_envs)), seeds)]
        idle = self.spec.to_box(np.zeros(self.spec.action_dim, np.float32))
        over: list[int] = []
        for time in range(longest):
            if again := sorted({*over, *(i for i, begin in enumerate(begins) if begin == time)}):
                self.reset(again, [seeds[i] for i in again])
            played = zip(actions, begins, strict=True)
            steps = self.step(np.stack([taken[time - begin] if time >= begin else idle for taken, begin in played]))
            over = np.flatnonzero(steps.terminated | steps.truncated).tolist()
            for i, replay in enumerate(replays):
                if time >= begins[i] and replay is not None:
                    replays[i] = None if i in over else (steps.obs[i], replay[1] + float(steps.reward[i]))
        if late := [i for i, begin in enumerate(begins) if begin == longest]:
            for i, first in zip(late, self.reset(late, [seeds[i] for i in late]), strict=True):
                replays[i] = (first, 0.0)
        return replays

    def close(self) -> None:
        """Leave them open: they are somebody else's."""

    def _flat(self, obs: Any) -> np.ndarray:
        return np.array(flattened(self._layout, obs), np.float32)


def _begins_itself(envs: VectorEnv[Any, Any, Any], name: str) -> bool:
    """Return whether it begins episodes by itself in the step that ends one; refuse what hides the last observation."""
    mode, inner = envs.metadata.get("autoreset_mode"), envs.unwrapped
    if mode == AutoresetMode.SAME_STEP:
        return True
    # Gymnasium's own can be begun one by one in any mode, but for the processes without shared memory, which forget it.
    ours = isinstance(inner, SyncVectorEnv) or (isinstance(inner, AsyncVectorEnv) and bool(inner.shared_memory))
    if mode == AutoresetMode.DISABLED or (mode == AutoresetMode.NEXT_STEP and ours):
        return False
    raise BisacError(
        f"'{name}' begins episodes anew in a way that its metadata call {mode}; bisac needs a vector environment with "
        f"autoreset_mode DISABLED or SAME_STEP."
    )


def _of(stacked: Any, index: int) -> Any:
    """Return one environment's part of what is stacked in each leaf of dictionaries and tuples."""
    if isinstance(stacked, Mapping):
        return {name: _of(part, index) for name, part in stacked.items() if not name.startswith("_")}
    if isinstance(stacked, tuple):
        return tuple(_of(part, index) for part in stacked)
    return stacked[index]


def _told(infos: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Return one environment's info; under _NAME stands which environments told NAME."""
    told = {}
    for name, value in infos.items():
        tellers: Sequence[bool] | None = infos.get(f"_{name}")
        if tellers is not None and tellers[index]:
            told[name] = _told(value, index) if isinstance(value, Mapping) else value[index]
    return told
