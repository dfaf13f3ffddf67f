"""What the members of the soft actor-critic family share: hyperparameters, the agent's state, and the steps of critics,
policy and temperature. How a member's policy follows its critics stands in the member's own `update`.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, NamedTuple, TypeVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from bisac.algos.base import Auto, number
from bisac.algos.delay import Delay, delayed
from bisac.algos.learner import Learner
from bisac.algos.schedule import KIND, LearningRate, adam, is_rate_or_auto
from bisac.algos.search import among, between
from bisac.algos.td import TemporalDifference, auto
from bisac.nets.actors import TanhGaussianActor
from bisac.nets.additive import Additive
from bisac.nets.critics import Critic, Decomposed, Decomposition, Joint
from bisac.nets.mlp import WIDEST
from bisac.ops.losses import temperature_loss
from bisac.ops.returns import soft_value
from bisac.ops.rewards import in_rewards, spread_of
from bisac.types import Metrics, Spec, Transition
from bisac.validate import require

CriticKind = Literal["joint", "vdn-a"]
"""One network on state and action, or the paper's decomposition over action dimensions."""

COOL = 0.2
"""Where alpha starts with normalised critics, in units of the rewards' spread: there it matters as much as they do."""

Temperature = Learner[Float[Array, ""]]
"""A learner of log alpha."""

ActorPart = TypeVar("ActorPart")
"""What a member learns beside the critics: a learner of its actor network, or None."""


class Improved(NamedTuple, Generic[ActorPart]):
    """What learns at every few updates only: the policy, and all that follows it."""

    actor: ActorPart
    """The learner of the actor network, or None."""
    temperature: Temperature
    """The learner of log alpha."""
    marginals: Learner[Additive] | None = None
    """The learner of distilled marginals, or None."""


class SoftState(eqx.Module, Generic[ActorPart]):
    """The agent of a member of the family: all that it learns."""

    actor: ActorPart
    """The learner of the actor network; None in a member that has none."""
    critic: Learner[Critic]
    """The learner of the twin critics."""
    target_critic: Critic | None
    """The critics' target networks; None where critics are normalised."""
    temperature: Temperature
    """The learner whose model is log alpha."""
    reward_unit: Float[Array, ""] | None = None
    """By what rewards are divided, so that values and alpha are in such units; None where they are as they come."""
    delay: Delay | None = None
    """What waits for the policy's next step; None where the policy learns at every update."""
    marginals: Learner[Additive] | None = None
    """The learner of the marginals Q_i that are distilled from a joint Q; None where there are none."""

    @property
    def alpha(self) -> Float[Array, ""]:
        """The temperature, in the same units as the critics' values."""
        return jnp.exp(self.temperature.model)


@dataclass(frozen=True)
class Soft(TemporalDifference[SoftState[ActorPart]]):
    """Hyperparameters of the soft actor-critic family, and the steps that its members' updates consist of."""

    temperature: float | Literal["learned"] = "learned"
    """The temperature alpha: learned towards the entropy target, or fixed at a number."""
    temperature_lr: LearningRate = field(
        default="auto", metadata=auto(classic=3e-4, normalised=1e-3) | between(1e-4, 3e-3, log=True)
    )
    """Learning rate of log alpha, where it is learned, or its schedule; auto is 3e-4, with normalised critics 1e-3."""
    initial_temperature: float | Auto = field(default="auto", metadata=auto(classic=1.0, normalised=None))
    """Where a learned alpha starts; auto is 1, with normalised critics 0.2 times the spread of random rewards."""
    entropy_target: float | Auto = "auto"
    """Entropy that a learned temperature aims at; auto is minus the number of action dimensions."""
    policy_delay: int | Auto = field(default="auto", metadata=auto(classic=1, normalised=3) | among(1, 2, 3))
    """Critic updates for each of the policy and the temperature; auto is 1, with normalised critics 3."""
    encoder: tuple[int, ...] = (64,)
    """VDN-a critic: hidden widths of the state encoder that all subnetworks share; none is the paper's form."""
    embedding: tuple[int, ...] = (32,)
    """VDN-a critic: widths of the embedding of one action dimension."""
    subnetwork: tuple[int, ...] = (64,)
    """VDN-a critic: hidden widths of one action dimension's subnetwork Q_i."""
    decomposition: Decomposition = "residual"
    """VDN-a critic: sum_i Q_i fits the target alone and U what it leaves (residual), or only their sum fits it, as in
    the paper (joint)."""

    def __post_init__(self):
        super().__post_init__()
        require(self, f"auto, {KIND}", is_rate_or_auto, "temperature_lr")
        require(self, "positive or 'auto'", lambda v: v == "auto" or v > 0, "initial_temperature")
        require(self, "at least 1", lambda v: v == "auto" or v >= 1, "policy_delay")
        require(self, f"one or more widths from 1 to {WIDEST}", lambda v: 1 <= v <= WIDEST, "embedding", "subnetwork")
        encoder = ("encoder",) if self.encoder else ()
        require(self, f"widths from 1 to {WIDEST}, or none", lambda v: 1 <= v <= WIDEST, *encoder)
        require(self, "positive or 'learned'", lambda v: v == "learned" or v > 0, "temperature")

    @abstractmethod
    def actor(self, state: SoftState[ActorPart]) -> TanhGaussianActor:
        """Return the agent's actor that explores, and that learning improves."""

    def init_soft(
        self,
        spec: Spec,
        key: Key[Array, ""],
        critic: CriticKind,
        actor: ActorPart,
        marginals: Learner[Additive] | None = None,
    ) -> SoftState[ActorPart]:
        """Return a fresh agent around an actor and, if any, distilled marginals, with critics of that kind."""
        critics = self.network((self._decomposed if critic == "vdn-a" else self._joint)(spec, key))
        state = SoftState(
            actor,
            Learner.init(critics, self.adam(self.critic_lr)),
            self.target(critics),
            Learner.init(jnp.log(jnp.float32(self._first_alpha or COOL)), adam(self.temperature_lr)),
            self.fresh_unit(),
            marginals=marginals,
        )
        if self.policy_delay == 1:
            return state
        told = jax.eval_shape(self.update, state, Transition.like(spec, self.batch_size), key)[0].delay
        nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), told)
        return replace(state, delay=nothing)

    @property
    def _first_alpha(self) -> float | None:
        """Where alpha starts, in the environment's rewards; None where their spread decides."""
        first = self.initial_temperature if self.temperature == "learned" else self.temperature
        return None if first == "auto" else float(first)

    def _joint(self, spec: Spec, key: Key[Array, ""]) -> Critic:
        return Joint.init(key, spec.obs_dim, spec.action_dim, self.hidden, self.activation)

    def _decomposed(self, spec: Spec, key: Key[Array, ""]) -> Critic:
        widths = (self.hidden, self.encoder, self.embedding, self.subnetwork)
        return Decomposed.init(key, spec.obs_dim, spec.action_dim, *widths, self.activation, self.decomposition)

    @final
    def begin(self, state: SoftState[ActorPart], warm_up: Transition) -> SoftState[ActorPart]:
        """Return the agent with rewards, and alpha with them, in units of the spread of the random steps' rewards."""
        if self.critic_norm == "none":
            return state
        state = replace(state, reward_unit=spread_of(warm_up.reward))
        return state if self._first_alpha is None else _at_temperature(state, self._first_alpha)

    @final
    def at_own_temperature(self, state: SoftState[ActorPart]) -> SoftState[ActorPart]:
        """Return an agent that learned under other hyperparameters at the temperature that these fix, if they do."""
        return state if self.temperature == "learned" else _at_temperature(state, self.temperature)

    def step_critic(
        self, state: SoftState[ActorPart], batch: Transition, key: Key[Array, ""]
    ) -> tuple[SoftState[ActorPart], Metrics]:
        """Return the agent with its critics one step closer to the soft value of the next state, and targets moved."""
        next_action, next_log_prob = self.actor(state)(batch.next_obs).sample(key)

        def value(next_q: Float[Array, "twin batch"]) -> Float[Array, "batch"]:
            return soft_value(next_q, next_log_prob, state.alpha)

        critic, metrics = self.step_values(
            state.critic, state.target_critic, state.reward_unit, batch, next_action, value
        )
        target_critic = self.follow(critic.model, state.target_critic)
        return replace(state, critic=critic, target_critic=target_critic), metrics

    def step_temperature(
        self, state: SoftState[ActorPart], entropy: Float[Array, "batch"], action_dim: int
    ) -> tuple[Temperature, Metrics]:
        """Return log alpha after one step towards the entropy target, given the policy's entropy at each state."""
        metrics = {"alpha": in_rewards(state.alpha, state.reward_unit), "entropy": entropy.mean()}
        if state.reward_unit is not None:
            metrics["reward_unit"] = state.reward_unit
        if self.temperature != "learned":
            return state.temperature, metrics
        target = -float(action_dim) if self.entropy_target == "auto" else self.entropy_target
        temperature, value, _ = state.temperature.step(
            adam(self.temperature_lr, every=number(self.policy_delay)),
            lambda log_alpha: (temperature_loss(log_alpha, entropy, target), None),
        )
        return temperature, metrics | {"temperature_loss": value}

    def when_due(
        self,
        state: SoftState[ActorPart],
        improve: Callable[[], tuple[Improved[ActorPart], Metrics]],
    ) -> tuple[SoftState[ActorPart], Metrics]:
        """Return the agent with what `improve` makes of it, at every `policy_delay`-th update.

        At the others it keeps what it has; the metrics are those of the last improvement.
        """
        kept = Improved(state.actor, state.temperature, state.marginals)
        improved, told, delay = delayed(number(self.policy_delay), state.delay, improve, kept)
        return replace(state, **improved._asdict(), delay=delay), told


def _at_temperature(state: SoftState[ActorPart], alpha: float) -> SoftState[ActorPart]:
    """Return the agent with a temperature that is given in the environment's rewards."""
    unit = jnp.ones(()) if state.reward_unit is None else state.reward_unit
    return eqx.tree_at(lambda s: s.temperature.model, state, jnp.log(jnp.float32(alpha) / unit))
