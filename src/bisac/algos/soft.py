"""What the members of the soft actor-critic family share: settings, state, the critic's step and the temperature's."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from bisac.algos.base import Auto, number
from bisac.algos.learner import Learner
from bisac.algos.td import Delay, TemporalDifference, delayed, in_rewards, spread_of
from bisac.nets.actors import ProjectedActor, projected_gaussian
from bisac.nets.critics import Critic, Decomposed, Decomposition, Joint
from bisac.ops.gaussian import TanhGaussian
from bisac.ops.losses import temperature_loss
from bisac.ops.quadrature import Grid
from bisac.ops.returns import soft_value
from bisac.types import Metrics, Spec, Transition
from bisac.validate import require

CriticKind = Literal["joint", "vdn-a"]
"""One network on state and action, or the paper's decomposition over action dimensions."""


CUT_OFF = 0.01
"""A marginal with more probability than this in the outer tenths of [-b, b] counts as cut off."""


COOL = 0.2
"""Where alpha starts with normalised critics, in units of the rewards' spread: there it matters as much as they do."""

Temperature = Learner[Float[Array, ""]]
"""A learner of log alpha."""

ActorPart = TypeVar("ActorPart")
"""What a member learns beside the critics: a learner of its actor network, or None."""


class SoftState(eqx.Module, Generic[ActorPart]):
    """All that a member of the family learns."""

    actor: ActorPart
    critic: Learner[Critic]
    target_critic: Critic | None
    """None where critics are normalised."""
    temperature: Temperature
    """Its model is log alpha."""
    reward_unit: Float[Array, ""] | None = None
    """By what rewards are divided, so that values and alpha are in such units; None where they are as they come."""
    delay: Delay | None = None
    """None where the policy learns at every update."""

    @property
    def alpha(self) -> Float[Array, ""]:
        """The temperature, in the same units as the critics' values."""
        return jnp.exp(self.temperature.model)


@dataclass(frozen=True)
class Soft(TemporalDifference[SoftState[ActorPart]]):
    """Settings of the soft actor-critic family."""

    temperature: float | Literal["learned"] = "learned"
    """The temperature alpha: learned towards the entropy target, or fixed at a number."""
    temperature_lr: float | Auto = "auto"
    """Learning rate of log alpha, where it is learned; auto is 3e-4, with normalised critics 1e-3."""
    initial_temperature: float | Auto = "auto"
    """Where a learned alpha starts; auto is 1, with normalised critics 0.2 times the spread of random rewards."""
    entropy_target: float | Auto = "auto"
    """Entropy that a learned temperature aims at; auto is minus the number of action dimensions."""
    policy_delay: int | Auto = "auto"
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
        require(self, "positive or 'auto'", lambda v: v == "auto" or v > 0, "temperature_lr", "initial_temperature")
        require(self, "at least 1", lambda v: v == "auto" or v >= 1, "policy_delay")
        require(self, "one or more positive widths", lambda v: v > 0, "embedding", "subnetwork")
        require(self, "positive widths, or none", lambda v: v > 0, *(("encoder",) if self.encoder else ()))
        require(self, "positive or 'learned'", lambda v: v == "learned" or v > 0, "temperature")

    def automatic(self) -> dict[str, Any]:
        """What auto stands for; a temperature that starts by the rewards' spread stays auto."""
        if self.critic_norm == "batch":
            return super().automatic() | {"temperature_lr": 1e-3, "policy_delay": 3}
        return super().automatic() | {"temperature_lr": 3e-4, "policy_delay": 1, "initial_temperature": 1.0}

    def init_soft(self, spec: Spec, key: Key[Array, ""], critic: CriticKind, actor: ActorPart) -> SoftState[ActorPart]:
        """A fresh state around the given actor."""
        critics = self.network((self._decomposed if critic == "vdn-a" else self._joint)(spec, key))
        state = SoftState(
            actor,
            Learner.init(critics, self.adam(self.critic_lr)),
            self.target(critics),
            Learner.init(jnp.log(jnp.float32(self._first_alpha or COOL)), optax.adam(number(self.temperature_lr))),
            self.fresh_unit(),
        )
        if self.policy_delay == 1:
            return state
        told = jax.eval_shape(self.update, state, Transition.like(spec, self.batch_size), key)[0].delay
        nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), told)
        return eqx.tree_at(lambda s: s.delay, state, nothing, is_leaf=lambda leaf: leaf is None)

    @property
    def _first_alpha(self) -> float | None:
        """Where alpha starts, in the environment's rewards; None where their spread decides."""
        first = self.initial_temperature if self.temperature == "learned" else self.temperature
        return None if first == "auto" else float(first)

    @final
    def begin(self, state: SoftState[ActorPart], warm_up: Transition) -> SoftState[ActorPart]:
        """With rewards in units of their spread, and alpha likewise."""
        if self.critic_norm == "none":
            return state
        unit = spread_of(warm_up.reward)
        state = eqx.tree_at(lambda s: s.reward_unit, state, unit)
        if self._first_alpha is None:
            return state
        return eqx.tree_at(lambda s: s.temperature.model, state, jnp.log(jnp.float32(self._first_alpha) / unit))

    def _joint(self, spec: Spec, key: Key[Array, ""]) -> Critic:
        return Joint.init(key, spec.obs_dim, spec.action_dim, self.hidden, self.activation)

    def _decomposed(self, spec: Spec, key: Key[Array, ""]) -> Critic:
        widths = (self.hidden, self.encoder, self.embedding, self.subnetwork)
        return Decomposed.init(key, spec.obs_dim, spec.action_dim, *widths, self.activation, self.decomposition)

    def step_critic(
        self, state: SoftState[ActorPart], batch: Transition, next_policy: TanhGaussian, key: Key[Array, ""]
    ) -> tuple[Learner[Critic], Metrics]:
        """The critics after one step towards the soft value of the next state."""
        next_action, next_log_prob = next_policy.sample(key)

        def value(next_q: Float[Array, "twin batch"]) -> Float[Array, "batch"]:
            return soft_value(next_q, next_log_prob, state.alpha)

        return self.step_values(state.critic, state.target_critic, state.reward_unit, batch, next_action, value)

    def step_policy(
        self,
        state: SoftState[ActorPart],
        critic: Learner[Critic],
        metrics: Metrics,
        improve: Callable[[], tuple[tuple[ActorPart, Temperature], Metrics]],
    ) -> tuple[SoftState[ActorPart], Metrics]:
        """The state after an update whose critics are given: with the policy improved, where that is due."""
        kept = state.actor, state.temperature
        (actor, temperature), told, delay = delayed(number(self.policy_delay), state.delay, improve, kept)
        target_critic = self.follow(critic.model, state.target_critic)
        state = SoftState(actor, critic, target_critic, temperature, state.reward_unit, delay)
        return state, told | metrics

    def step_temperature(
        self, state: SoftState[ActorPart], entropy: Float[Array, "batch"], action_dim: int
    ) -> tuple[Temperature, Metrics]:
        """Log alpha after one step towards the entropy target."""
        metrics = {"alpha": in_rewards(state.alpha, state.reward_unit), "entropy": entropy.mean()}
        if state.reward_unit is not None:
            metrics["reward_unit"] = state.reward_unit
        if self.temperature != "learned":
            return state.temperature, metrics
        target = -float(action_dim) if self.entropy_target == "auto" else self.entropy_target
        temperature, value, _ = state.temperature.step(
            optax.adam(number(self.temperature_lr)),
            lambda log_alpha: (temperature_loss(log_alpha, entropy, target), None),
        )
        return temperature, metrics | {"temperature_loss": value}


@dataclass(frozen=True)
class Projecting(Soft[ActorPart]):
    """Settings of the members that project: the quadrature of the forward-KL projection."""

    integration_bound: float = 5.0
    """b: the projection integrates x over [-b, b]."""
    simpson_intervals: int = 100
    """Even number of Simpson intervals; the spacing 2b / intervals should not exceed 0.1."""
    chebyshev_points: int = 17
    """Points at which each Q_i is evaluated, then interpolated to the Simpson nodes; 0 evaluates at every node."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "positive", lambda v: v > 0, "integration_bound")
        require(self, "even and from 2 to 10000", lambda v: 2 <= v <= 10_000 and v % 2 == 0, "simpson_intervals")
        require(self, "0 or from 2 to 200", lambda v: v == 0 or 2 <= v <= 200, "chebyshev_points")

    def projected(self, critic: Critic, temperature: Temperature) -> ProjectedActor:
        """The projection of the policy that this critic and temperature define."""
        assert isinstance(critic, Decomposed)
        grid = Grid(self.integration_bound, self.simpson_intervals, self.chebyshev_points)
        return ProjectedActor(critic.marginals, temperature.model, grid)

    def project(
        self, critic: Critic, temperature: Temperature, obs: Float[Array, "batch obs"]
    ) -> tuple[TanhGaussian, Metrics]:
        """The projected policy at each state, and how well the grid resolved it."""
        actor = self.projected(critic, temperature)
        projection = actor.project(obs)
        policy = projected_gaussian(projection)
        too_sharp = jnp.sqrt(projection.var) < actor.grid.spacing
        return policy, {
            "projection_std": policy.std.mean(),
            "projection_too_sharp": too_sharp.mean(),
            "projection_cut_off": (projection.edge_mass > CUT_OFF).mean(),
        }
