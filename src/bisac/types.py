"""The few types that every layer shares: experience, the environment's sizes, and metrics."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bisac.errors import BisacError
from bisac.layout import Layout, layout_from_json

Box = TypeVar("Box", Float[np.ndarray, "*batch act"], Float[Array, "*batch act"])
"""Actions, as NumPy's arrays or as JAX's."""

Metrics = dict[str, Float[Array, ""]]
"""Scalars that an update reports, by the name they have in logs."""


def require_float32() -> None:
    """Refuse JAX's double precision, in which networks would no longer fit their files."""
    if jax.config.read("jax_enable_x64"):
        raise BisacError("bisac computes in float32, and JAX is set to 64 bits; unset JAX_ENABLE_X64 in this process.")


LARGEST_BOUND = float(np.finfo(np.float32).max) / 2
"""What no action's bound exceeds, so that the distance of two bounds is a float32 too."""


class Transition(NamedTuple):
    """One step of experience, or a batch of them along leading axes."""

    obs: Float[Array, "*batch obs"]
    """The observation that was acted upon."""
    action: Float[Array, "*batch act"]
    """The action in [-1, 1]; the environment's edge scales it to the environment's box."""
    reward: Float[Array, "*batch"]
    """The reward of the action."""
    discount: Float[Array, "*batch"]
    """0 where the episode terminated, else 1: a truncated episode still bootstraps."""
    next_obs: Float[Array, "*batch obs"]
    """The observation the action led to, even where the episode ended and another began."""

    @staticmethod
    def like(spec: "Spec", *batch: int) -> "Transition":
        """Return a transition of zeros, or a batch of them, in the shapes of such an environment."""
        obs, action, scalar = jnp.zeros((*batch, spec.obs_dim)), jnp.zeros((*batch, spec.action_dim)), jnp.zeros(batch)
        return Transition(obs, action, scalar, scalar, obs)


@dataclass(frozen=True)
class Spec:
    """What a policy must know of an environment: sizes, and the box of its actions."""

    env_id: str
    """The environment's name."""
    obs_dim: int
    """How many numbers an observation has."""
    action_low: tuple[float, ...]
    """The least value of each action dimension."""
    action_high: tuple[float, ...]
    """The largest value of each action dimension."""
    env_args: tuple[str, ...] = ()
    """What the environment was made with, each key=value."""
    layout: Layout | None = None
    """What the environment's own observations consist of, where they are no vectors; see `bisac.layout`."""

    @staticmethod
    def from_json(fields: dict[str, Any]) -> "Spec":
        """Return the spec that a file of ours holds; raise ValueError, KeyError or TypeError where it holds none."""
        low, high = (tuple(float(v) for v in fields[name]) for name in ("action_low", "action_high"))
        args, layout = tuple(map(str, fields.get("env_args", ()))), layout_from_json(fields.get("layout"))
        spec = Spec(str(fields["env_id"]), int(fields["obs_dim"]), low, high, args, layout)
        bounded = all(abs(bound) <= LARGEST_BOUND for bound in low + high)
        if spec.obs_dim < 1 or not low or len(low) != len(high) or not bounded:
            raise ValueError(f"impossible sizes or bounds {fields}")
        if not all(name.isprintable() for name in (spec.env_id, *args)):  # they are shown in terminals and on pages
            raise ValueError(f"an environment is not called {spec.env_id!r}")
        return spec

    @property
    def action_dim(self) -> int:
        """The number of action dimensions N."""
        return len(self.action_low)

    @property
    def sizes(self) -> str:
        """The environment and its sizes, in words."""
        return f"{self.env_id} ({self.obs_dim} observations, {self.action_dim} actions)"

    def to_box(self, action: Box) -> Box:
        """Return actions in [-1, 1] in the environment's own units, within its box; on the device those of JAX."""
        low, high, centre, reach = self.box
        xp: Any = jnp if isinstance(action, jax.Array) else np
        return xp.minimum(xp.maximum(centre + reach * action, low), high)

    @cached_property
    def box(self) -> tuple[Float[np.ndarray, "act"], ...]:
        """The least and the largest action in float32, the middle between them, and how far from it they are."""
        low, high = np.asarray(self.action_low, np.float32), np.asarray(self.action_high, np.float32)
        # Inwards where float32 has no such number: an environment may check its bounds.
        low = np.where(low < np.asarray(self.action_low), np.nextafter(low, np.float32(np.inf)), low)
        high = np.where(high > np.asarray(self.action_high), np.nextafter(high, np.float32(-np.inf)), high)
        return low, high, (high + low) / 2, (high - low) / 2
