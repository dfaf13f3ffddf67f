"""Temporal-difference learning of critics: what every off-policy algorithm here does, classic or normalised."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from bisac.algos.base import Auto, OffPolicy, number
from bisac.algos.learner import Learner
from bisac.nets.critics import Critic
from bisac.nets.mlp import Activation, normalised
from bisac.nets.normalisation import Moments, dead_units, moments_gap
from bisac.ops.losses import squared_error
from bisac.ops.returns import polyak, td_target
from bisac.types import Metrics, Transition
from bisac.validate import require

CriticNorm = Literal["batch", "none"]
"""Whether networks are normalised over the batch and have no targets, or are classic ones with targets."""

LEAST_BATCH = 16
"""Transitions below which the moments of a batch say little of the memory that it was drawn from."""

State = TypeVar("State")
Net = TypeVar("Net")
Improved = TypeVar("Improved")


@dataclass(frozen=True)
class TemporalDifference(OffPolicy[State]):
    """Settings of critics that learn from their own next values."""

    critic_norm: CriticNorm = "none"
    """Normalise critics and actor, each over its own batch, without targets (batch); or classic networks (none)."""
    tau: float | Auto = "auto"
    """Fraction by which target networks move towards the online ones; auto is 0.005. For --critic-norm none."""
    critic_lr: float = 1e-3
    """Learning rate of the critics."""
    adam_b1: float | Auto = "auto"
    """Adam's memory of past gradients, for the critics and the actor; auto is 0.9, normalised 0.5."""
    policy_average: float | Auto = "auto"
    """Share of the actor's steps so far that the evaluated and saved policy averages; auto is 0, normalised 0.05."""
    hidden: tuple[int, ...] = (256, 256)
    """Hidden widths of the actor, and of the joint critic or U; normalised networks need 128 or more."""
    activation: Activation = "relu"
    """Activation of every network."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "in (0, 1]", lambda v: v == "auto" or 0.0 < v <= 1.0, "tau")
        require(self, "in [0, 1)", lambda v: v == "auto" or 0.0 <= v < 1.0, "adam_b1")
        require(self, "positive", lambda v: v > 0, "critic_lr")
        require(self, "in [0, 1]", lambda v: v == "auto" or 0.0 <= v <= 1.0, "policy_average")
        require(self, "one or more positive widths", lambda v: v > 0, "hidden")
        if self.critic_norm == "batch":
            require(self, "left out with --critic-norm batch, which has no targets", lambda v: v == "auto", "tau")
            kind = f"at least {LEAST_BATCH} with --critic-norm batch, for the statistics of fewer say little"
            require(self, kind, lambda v: v >= LEAST_BATCH, "batch_size")

    def automatic(self) -> dict[str, Any]:
        """What auto stands for; tau stays auto where there is no target."""
        if self.critic_norm == "batch":
            return super().automatic() | {"adam_b1": 0.5, "policy_average": 0.05}
        return super().automatic() | {"adam_b1": 0.9, "tau": 0.005, "policy_average": 0.0}

    @final
    def usual_envs(self) -> int:
        """Several with normalised critics, which learn while the memory is small; else one, as in the papers."""
        return 8 if self.critic_norm == "batch" else 1

    def network(self, model: Net) -> Net:
        """A fresh model in the chosen form."""
        return normalised(model) if self.critic_norm == "batch" else model

    def target(self, model: Net) -> Net | None:
        """The target of a fresh model, where there are targets."""
        # Not the same buffers: the state is donated to the compiled step.
        return None if self.critic_norm == "batch" else jax.tree.map(jnp.copy, model)

    def learner(self, actor: Net, learning_rate: float | Auto) -> Learner[Net]:
        """A fresh actor in the chosen form, about to be trained."""
        return Learner.init(self.network(actor), self.adam(learning_rate), number(self.policy_average) > 0.0)

    def stepped(self, actor: Learner[Net], seen: tuple[Moments, ...]) -> Learner[Net]:
        """The actor's learner after a gradient step: with what its layers saw, and with itself in the average."""
        return actor.observed(seen).averaging(number(self.policy_average))

    def adam(self, learning_rate: float | Auto) -> optax.GradientTransformation:
        """The optimiser of the critics and the actor."""
        return optax.adam(number(learning_rate), b1=number(self.adam_b1))

    def fresh_unit(self) -> Float[Array, ""] | None:
        """The unit of rewards before any was seen; None in the classic form, which takes them as they are."""
        return jnp.ones(()) if self.critic_norm == "batch" else None

    def follow(self, online: Net, target: Net | None) -> Net | None:
        """A target network moved towards the online one, where there are targets."""
        if target is None:
            return None
        return jax.tree.map(lambda o, t: polyak(o, t, number(self.tau)), online, target)

    def step_values(
        self,
        critic: Learner[Critic],
        target_critic: Critic | None,
        unit: Float[Array, ""] | None,
        batch: Transition,
        next_action: Float[Array, "batch act"],
        value: Callable[[Float[Array, "twin batch"]], Float[Array, "batch"]],
    ) -> tuple[Learner[Critic], Metrics]:
        """The critics after one step towards y = r + gamma (1 - terminated) V(s'), with V by `value` from Q(s', a')."""
        reward = batch.reward if unit is None else batch.reward / unit

        def target(next_q: Float[Array, "twin batch"]) -> Float[Array, "batch"]:
            return td_target(reward, batch.discount, value(next_q), self.gamma)

        def loss(model: Critic):
            if target_critic is None:
                answer = joint_pass(model, batch, next_action, target)
            else:
                answer = with_target(model, target_critic, batch, next_action, target)
            losses = [squared_error(q, answer.target) for q in answer.estimates]
            return sum(losses, jnp.zeros(())), (answer.estimates[-1].mean(), answer.seen)

        stepped, loss_value, (q, seen) = critic.step(self.adam(self.critic_lr), loss)
        metrics = {"critic_loss": in_rewards(loss_value, unit, 2), "q": in_rewards(q, unit)}
        return stepped.observed(seen), metrics | norm_metrics("critic", critic.moments, seen)


class Regression(NamedTuple):
    """What the critics say of a batch, and what they should say."""

    estimates: tuple[Float[Array, "twin batch"], ...]
    target: Float[Array, "batch"]
    seen: tuple[Moments, ...]
    """Moments of the batch in each layer of normalised critics."""


Target = Callable[[Float[Array, "twin batch"]], Float[Array, "batch"]]
"""The TD target from the critics' answers at the next state and action."""


def with_target(
    critic: Critic, target_critic: Critic, batch: Transition, next_action: Float[Array, "batch act"], target: Target
) -> Regression:
    """The classic way: Q(s, a) by the critics, Q(s', a') by their targets."""
    next_q = target_critic(batch.next_obs, next_action)
    return Regression(critic.estimates(batch.obs, batch.action), target(next_q), ())


def joint_pass(critic: Critic, batch: Transition, next_action: Float[Array, "batch act"], target: Target) -> Regression:
    """Without targets: [s; s'] and [a; a'] in one pass, so that the moments are of both; Q(s', a') is held constant.

    The gradient does flow through the moments, which both halves share (CrossQ: Bhatt et al., 2024).
    """
    obs, action = jnp.concatenate([batch.obs, batch.next_obs]), jnp.concatenate([batch.action, next_action])
    estimates, seen = critic.on_batch(obs, action)
    now, after = zip(*(jnp.split(q, 2, axis=-1) for q in estimates), strict=True)
    return Regression(now, jax.lax.stop_gradient(target(after[-1])), seen)


def spread_of(reward: Float[Array, "step"]) -> Float[Array, ""]:
    """The unit of rewards: how much those of random actions vary, whatever single ones are like.

    The distance of the 5th from the 95th percentile as it is in a normal distribution of standard deviation 1: a crash
    in a hundred steps does not count. Where nearly all rewards are equal, the standard deviation itself; where all
    are, their size; 1 where all are zero.
    """
    low, high = jnp.percentile(reward, jnp.array([5.0, 95.0]))
    candidates = jnp.stack([(high - low) / 3.29, reward.std(), jnp.abs(reward).mean(), jnp.ones(())])
    # The rounding of a constant's mean is no spread.
    least = 1e-6 * jnp.abs(reward).max()
    return candidates[jnp.argmax(candidates > jnp.where(jnp.arange(4) < 2, least, 0.0))]


def in_rewards(value: Float[Array, ""], unit: Float[Array, ""] | None, power: int = 1) -> Float[Array, ""]:
    """A value that was learned in units of rewards, as the environment counts them."""
    return value if unit is None else value * unit**power


def norm_metrics(name: str, running: tuple[Moments, ...], seen: tuple[Moments, ...]) -> Metrics:
    """What a user should know of normalised networks; nothing of classic ones."""
    if not seen:
        return {}
    return {f"{name}_dead_units": dead_units(seen), f"{name}_moments_gap": moments_gap(running, seen)}


class Delay(eqx.Module):
    """What a policy that does not learn at every update leaves for the next one."""

    updates: Int[Array, ""]
    """Updates so far."""
    told: Metrics
    """Metrics of the policy's last step, for not every update takes one."""


def delayed(
    every: int, past: Delay | None, improve: Callable[[], tuple[Improved, Metrics]], kept: Improved
) -> tuple[Improved, Metrics, Delay | None]:
    """What `improve` gives at the first of `every` updates; at the others what was kept, with the last metrics."""
    if every == 1 or past is None:  # None: asked only for the shapes of what it tells
        improved, metrics = improve()
        return improved, metrics, None if every == 1 else Delay(jnp.ones((), jnp.int32), metrics)
    improved, told = jax.lax.cond(past.updates % every == 0, improve, lambda: (kept, past.told))
    return improved, told, Delay(past.updates + 1, told)
