"""PPO, and A2C, which is its plainest case: how often, and in which parts, a rollout is learned from."""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from bisac.algos.base import Rollout
from bisac.algos.policy_gradient import Optimiser, PolicyGradient, State, clipped
from bisac.algos.search import among, between
from bisac.types import Metrics
from bisac.validate import require


@dataclass(frozen=True)
class PPO(PolicyGradient):
    """Proximal Policy Optimisation: several epochs on each rollout, the policy kept near the one that made it."""

    epochs: int = field(default=10, metadata=among(3, 5, 10, 20))
    """Passes over each rollout."""
    minibatches: int = field(default=32, metadata=among(8, 16, 32, 64))
    """Parts into which a pass divides the rollout."""
    clip: float = field(default=0.2, metadata=among(0.1, 0.2, 0.3))
    """How far the probability ratio may move from 1 with profit."""
    value_clip: float | None = None
    """How far a value may move from what it was with profit; None for no limit."""
    optimiser: Optimiser = "adam"
    """The optimiser of both networks."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "at least 1", lambda v: v >= 1, "epochs", "minibatches")
        require(self, "positive", lambda v: v is None or v > 0, "clip", "value_clip")

    def check_num_envs(self, num_envs: int) -> None:
        """Refuse a number that leaves minibatches too small to learn from.

        A rollout takes the same number of steps in each environment, so it may be shorter than asked for, or longer.
        """
        steps = self.length(num_envs) * num_envs
        least = 2 if self.normalise_advantages else 1  # the only one of its minibatch would have no advantage
        if steps // self.minibatches < least:
            kind = f"at most {steps // least}: rollouts have {steps} steps, and minibatches need {least}"
            require(self, kind, lambda _: False, "minibatches")

    def optimiser_chain(self) -> optax.GradientTransformation:
        """Return the chosen optimiser, after a cut of gradients at their largest norm."""
        return clipped(self.optimiser, self.learning_rate, self.max_gradient)

    def update(
        self, state: State, rollout: Rollout, key: Key[Array, ""], remaining: Float[Array, ""]
    ) -> tuple[State, Metrics]:
        """Go through the rollout in epochs, each in minibatches of a new order, with a step on each."""
        steps = self.rated(state, rollout)
        size = steps.value.shape[0] // self.minibatches
        value_clip = jnp.inf if self.value_clip is None else self.value_clip

        def epoch(state: State, key: Key[Array, ""]) -> tuple[State, dict[str, Array]]:
            order = jax.random.permutation(key, steps.value.shape[0])[: self.minibatches * size]

            def minibatch(state: State, rows: Array) -> tuple[State, Metrics]:
                return self.step(state, jax.tree.map(lambda leaf: leaf[rows], steps), remaining, self.clip, value_clip)

            return jax.lax.scan(minibatch, state, order.reshape(self.minibatches, size))

        state, metrics = jax.lax.scan(epoch, state, jax.random.split(key, self.epochs))
        return state, jax.tree.map(jnp.mean, metrics) | {"explained_variance": steps.explained_variance}


@dataclass(frozen=True)
class A2C(PolicyGradient):
    """Advantage Actor-Critic: one step on each short rollout, as a whole and without clipping, by RMSprop."""

    rollout: int = field(default=40, metadata=among(40, 64, 128, 256))
    """Environment steps between updates, summed over the environments."""
    learning_rate: float = field(default=7e-4, metadata=between(1e-4, 5e-3, log=True))
    """Learning rate of both networks."""
    normalise_advantages: bool = False
    """Shift and scale advantages to mean 0 and standard deviation 1 in each rollout."""

    def check_num_envs(self, num_envs: int) -> None:
        """Refuse a rollout of one step where advantages are normalised: it would have none left."""
        if self.normalise_advantages and self.length(num_envs) * num_envs < 2:
            require(self, "at least 2 where advantages are normalised", lambda _: False, "rollout")

    def optimiser_chain(self) -> optax.GradientTransformation:
        """Return RMSprop, after a cut of gradients at their largest norm."""
        return clipped("rmsprop", self.learning_rate, self.max_gradient)

    def update(
        self,
        state: State,
        rollout: Rollout,
        key: Key[Array, ""],  # noqa: ARG002  nothing is drawn
        remaining: Float[Array, ""],
    ) -> tuple[State, Metrics]:
        """Take one step on the whole rollout."""
        steps = self.rated(state, rollout)
        state, metrics = self.step(state, steps, remaining, clip=jnp.inf, value_clip=jnp.inf)
        return state, metrics | {"explained_variance": steps.explained_variance}
