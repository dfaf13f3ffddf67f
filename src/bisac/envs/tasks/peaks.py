"""One step, and a reward with a broad low peak in each action dimension, and a narrow high one far from it."""

import math
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from bisac.envs.tasks.arguments import no_pictures, number, whole

NEAR_HEIGHT = 0.6
NEAR_WIDTH = 0.3


class Peaks(gym.Env[np.ndarray, np.ndarray]):
    """Find the narrow high peak, in one step.

    The observation is a context c, uniform in [-1, 1] in each dimension. In dimension i the near peak is at
    -distance / 2 + shift c_i, the far one at distance / 2 + shift c_i, and an action's worth there is the higher of

        0.6    exp(-(a_i - near_i)^2 / (2 0.3^2))
        height exp(-(a_i - far_i)^2 / (2 width^2)).

    The reward is (1 - coupling) times the mean of the dimensions' worth plus coupling times the least of them. So
    without coupling an additive critic is exact; coupled, none is, and at 1 nothing is gained before all dimensions
    have left the near peak. With shift 0 the context says nothing: it varies, as normalised networks need.

    Returns: random actions 0.31 (1,000 episodes); the best is `height`, 1; SAC 0.600 in three seeds, after 4,000 steps
    with `--critic-norm none --hidden 64 64 --initial-temperature 0.05` and with `--hidden 128 128` alone.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  as Gymnasium declares it

    def __init__(
        self,
        dims: int = 2,
        width: float = 0.08,
        height: float = 1.0,
        distance: float = 1.2,
        coupling: float = 0.0,
        shift: float = 0.0,
        render_mode: str | None = None,
    ):
        no_pictures(render_mode)
        self.dims = whole("dims", dims, 1, 8)
        self.width = number("width", width, 0, 1, above=True)
        self.height = number("height", height, NEAR_HEIGHT, math.inf, above=True)
        self.distance = number("distance", distance, 0, 2, above=True)
        self.coupling = number("coupling", coupling, 0, 1)
        self.shift = number("shift", shift, 0, 1 - self.distance / 2)  # so that the peaks stay within reach
        self.observation_space = spaces.Box(-1.0, 1.0, (self.dims,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (self.dims,), np.float32)
        self._context = np.zeros(self.dims, np.float32)

    @property
    def best_return(self) -> float:
        """The most that an episode can bring: the far peak's height."""
        return self.height

    def best_action(self, context: np.ndarray) -> np.ndarray:
        """Return the action at the far peak of all dimensions."""
        return (self.distance / 2 + self.shift * context).astype(np.float32)

    def reward(self, action: np.ndarray, context: np.ndarray) -> np.ndarray | np.floating[Any]:
        """Return what actions bring; both arrays may have leading axes."""
        place = action.astype(np.float64) - self.shift * context.astype(np.float64)
        return peaks_reward(place, self.width, self.height, self.distance, self.coupling)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Draw a context."""
        super().reset(seed=seed, options=options)
        self._context = self.np_random.uniform(-1.0, 1.0, self.dims).astype(np.float32)
        return self._context.copy(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Act once; the episode is over."""
        reward = float(self.reward(np.asarray(action), self._context))
        return self._context.copy(), reward, True, False, {}


def peaks_reward(place: Any, width: Any, height: Any, distance: Any, coupling: Any) -> Any:
    """Return what actions bring whose distance from the middle between the peaks is `place`, in its last axis.

    The arrays may be NumPy's or JAX's.
    """
    xp = place.__array_namespace__()
    near = (place + distance / 2) / NEAR_WIDTH
    far = (place - distance / 2) / width
    worth = xp.maximum(NEAR_HEIGHT * xp.exp(-0.5 * near**2), height * xp.exp(-0.5 * far**2))
    return (1 - coupling) * worth.mean(axis=-1) + coupling * worth.min(axis=-1)
