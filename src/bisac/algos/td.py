"""Temporal-difference learning of critics, and of actors by them: what every off-policy algorithm here does.

Two forms of it stand side by side: classic networks with targets, and normalised ones without. Which policy chooses
the next action, and what a next state is worth, is the algorithms' own and not known here.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar, final

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from bisac.algos.base import EARLIER, Auto, OffPolicy, number
from bisac.algos.learner import Learner
from bisac.algos.schedule import KIND, LearningRate, adam, is_rate
from bisac.algos.search import between
from bisac.nets.critics import Critic
from bisac.nets.mlp import WIDEST, Activation, normalised
from bisac.nets.normalisation import Moments, dead_units, moments_gap
from bisac.ops.losses import squared_error
from bisac.ops.returns import polyak, td_target
from bisac.ops.rewards import in_rewards
from bisac.types import Metrics, Transition
from bisac.validate import require

CriticNorm = Literal["batch", "none"]
"""Whether networks are normalised over the batch and have no targets, or are classic ones with targets."""

LEAST_BATCH = 16
"""Transitions below which the moments of a batch say little of the memory that it was drawn from."""

State = TypeVar("State")
Net = TypeVar("Net")
Aux = TypeVar("Aux")

Value = Callable[[Float[Array, "twin *sample batch"]], Float[Array, "batch"]]
"""A function of the critics' answers at the next state and action, or actions, such as the value of that state."""


def auto(classic: float | None, normalised: float | None) -> dict[CriticNorm, float]:
    """Return the metadata of a field whose default is auto: what this stands for in either form.

    Where it is None, auto stays, and the algorithm does without the number or finds it while it runs.
    """
    meanings: dict[CriticNorm, float | None] = {"none": classic, "batch": normalised}
    return {form: meaning for form, meaning in meanings.items() if meaning is not None}


@dataclasses.dataclass(frozen=True)
class TemporalDifference(OffPolicy[State]):
    """Hyperparameters of critics that learn from their own next values, and the steps of critics and actors."""

    critic_norm: CriticNorm = dataclasses.field(default="none", metadata={EARLIER: "none"})
    """Normalise critics and actor, each over its own batch, without targets (batch); or classic networks (none)."""
    tau: float | Auto = dataclasses.field(
        default="auto", metadata=auto(classic=0.005, normalised=None) | between(1e-3, 5e-2, log=True)
    )
    """Fraction by which target networks move towards the online ones; auto is 0.005. For --critic-norm none."""
    critic_lr: LearningRate = dataclasses.field(default=1e-3, metadata=between(1e-4, 3e-3, log=True))
    """Learning rate of the critics, or its schedule over updates: linear:FROM:TO:UPDATES."""
    adam_b1: float | Auto = dataclasses.field(default="auto", metadata=auto(classic=0.9, normalised=0.5))
    """Adam's memory of past gradients, for the critics and the actor; auto is 0.9, normalised 0.5."""
    policy_average: float | Auto = dataclasses.field(default="auto", metadata=auto(classic=0.0, normalised=0.05))
    """Share of the actor's steps so far that the evaluated and saved policy averages; auto is 0, normalised 0.05."""
    hidden: tuple[int, ...] = (256, 256)
    """Hidden widths of the actor, and of the joint critic or U; normalised networks need 128 or more."""
    activation: Activation = "relu"
    """Activation of every network."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "in (0, 1]", lambda v: v == "auto" or 0.0 < v <= 1.0, "tau")
        require(self, "in [0, 1)", lambda v: v == "auto" or 0.0 <= v < 1.0, "adam_b1")
        require(self, KIND, is_rate, "critic_lr")
        require(self, "in [0, 1]", lambda v: v == "auto" or 0.0 <= v <= 1.0, "policy_average")
        require(self, f"one or more widths from 1 to {WIDEST}", lambda v: 1 <= v <= WIDEST, "hidden")
        if self.critic_norm == "batch":
            require(self, "left out with --critic-norm batch, which has no targets", lambda v: v == "auto", "tau")
            kind = f"at least {LEAST_BATCH} with --critic-norm batch, for the statistics of fewer say little"
            require(self, kind, lambda v: v >= LEAST_BATCH, "batch_size")

    @final
    def automatic(self) -> dict[str, Any]:
        """Return what auto stands for in the chosen form, of all fields whose metadata tell it (see `auto`)."""
        form = self.critic_norm
        return {field.name: field.metadata[form] for field in dataclasses.fields(self) if form in field.metadata}

    @final
    def usual_envs(self) -> int:
        """Return 8 with normalised critics, which learn while the memory is small; else 1, as in the papers."""
        return 8 if self.critic_norm == "batch" else 1

    def network(self, model: Net) -> Net:
        """Return a fresh model in the chosen form: as it is, or with its layers' inputs normalised."""
        return normalised(model) if self.critic_norm == "batch" else model

    def target(self, model: Net) -> Net | None:
        """Return the target network of a fresh model; None in the form that has no targets."""
        return None if self.critic_norm == "batch" else copied(model)

    def follow(self, online: Net, target: Net | None) -> Net | None:
        """Return a target network moved by tau towards the online one; None where there are no targets."""
        return None if target is None else self.followed(online, target)

    def followed(self, online: Net, target: Net) -> Net:
        """Return a target network moved by tau towards the online one."""
        return jax.tree.map(lambda o, t: polyak(o, t, number(self.tau)), online, target)

    def adam(self, learning_rate: LearningRate, every: int = 1) -> optax.GradientTransformation:
        """Return the optimiser of the critics and the actor, for steps at one in `every` updates."""
        return adam(learning_rate, number(self.adam_b1), every)

    def learner(self, actor: Net, learning_rate: LearningRate) -> Learner[Net]:
        """Return the learner of a fresh actor in the chosen form."""
        return Learner.init(self.network(actor), self.adam(learning_rate), number(self.policy_average) > 0.0)

    def fresh_unit(self) -> Float[Array, ""] | None:
        """Return the unit of rewards before any was seen; None in the classic form, which takes them as they are."""
        return jnp.ones(()) if self.critic_norm == "batch" else None

    def step_values(
        self,
        critic: Learner[Critic],
        target_critic: Critic | None,
        unit: Float[Array, ""] | None,
        batch: Transition,
        next_action: Float[Array, "*sample batch act"],
        value: Value,
    ) -> tuple[Learner[Critic], Metrics]:
        """Return the critics after one step towards y = r + gamma (1 - terminated) V(s'), and its metrics.

        V(s') is what `value` makes of Q(s', a') at the next action, or at several of them along a leading axis, which
        takes targets and joint critics. `unit` is what rewards are divided by.
        """
        reward = batch.reward if unit is None else batch.reward / unit

        def target(next_q: Float[Array, "twin *sample batch"]) -> Float[Array, "batch"]:
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

    def step_actor(
        self,
        actor: Learner[Net],
        learning_rate: LearningRate,
        loss: Callable[[Net], tuple[Float[Array, ""], tuple[Aux, tuple[Moments, ...]]]],
        unit: Float[Array, ""] | None,
        every: int = 1,
    ) -> tuple[Learner[Net], Aux, Metrics]:
        """Return the actor after one step on `loss`, what else the loss found, and the step's metrics.

        The loss returns its value, what else it found, and the moments of the batch in each layer of the actor. `unit`
        is the unit of rewards that its value is in, or None. It is called at one in `every` updates.
        """
        stepped, value, (found, seen) = actor.step(self.adam(learning_rate, every), loss)
        metrics = {"actor_loss": in_rewards(value, unit)} | norm_metrics("actor", actor.moments, seen)
        return stepped.observed(seen, number(self.policy_average)), found, metrics


def copied(model: Net) -> Net:
    """Return the same model in other buffers, for the state is donated to the compiled step."""
    return jax.tree.map(jnp.copy, model)


class Regression(NamedTuple):
    """What the critics say of a batch, and what they should say."""

    estimates: tuple[Float[Array, "twin batch"], ...]
    """What is fitted to the target, each by itself; the last is Q."""
    target: Float[Array, "batch"]
    """The TD target."""
    seen: tuple[Moments, ...]
    """Moments of the batch in each layer of normalised critics."""


def with_target(
    critic: Critic,
    target_critic: Critic,
    batch: Transition,
    next_action: Float[Array, "*sample batch act"],
    target: Value,
) -> Regression:
    """Return the classic regression: Q(s, a) by the critics, and a target from Q(s', a') by their target networks."""
    next_q = target_critic(batch.next_obs, next_action)
    return Regression(critic.estimates(batch.obs, batch.action), target(next_q), ())


def joint_pass(critic: Critic, batch: Transition, next_action: Float[Array, "batch act"], target: Value) -> Regression:
    """Return the regression without target networks: both Q(s, a) and Q(s', a'), held constant, by the critics.

    [s; s'] and [a; a'] go through them in one pass, so that the moments are of both halves. The gradient does flow
    through these moments (CrossQ: Bhatt et al., 2024).
    """
    obs, action = jnp.concatenate([batch.obs, batch.next_obs]), jnp.concatenate([batch.action, next_action])
    estimates, seen = critic.on_batch(obs, action)
    now, after = zip(*(jnp.split(q, 2, axis=-1) for q in estimates), strict=True)
    return Regression(now, jax.lax.stop_gradient(target(after[-1])), seen)


def norm_metrics(name: str, running: tuple[Moments, ...], seen: tuple[Moments, ...]) -> Metrics:
    """Return what a user should know of a normalised network on a batch; nothing of a classic one."""
    if not seen:
        return {}
    return {f"{name}_dead_units": dead_units(seen), f"{name}_moments_gap": moments_gap(running, seen)}
