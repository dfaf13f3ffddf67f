"""What the members of the soft actor-critic family share: settings, state, the critic's step and the temperature's."""

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from bisac.algos.base import OffPolicy, require
from bisac.algos.td import td_step
from bisac.learner import Learner
from bisac.nets.actors import ProjectedActor, projected_gaussian
from bisac.nets.critics import Critic, Decomposed, Decomposition, Joint
from bisac.nets.mlp import Activation
from bisac.ops.gaussian import TanhGaussian
from bisac.ops.losses import temperature_loss
from bisac.ops.quadrature import Grid
from bisac.ops.returns import soft_value
from bisac.types import Metrics, Spec, Transition

CriticKind = Literal["joint", "vdn-a"]
"""One network on state and action, or the paper's decomposition over action dimensions."""


CUT_OFF = 0.01
"""A marginal with more probability than this in the outer tenths of [-b, b] counts as cut off."""


ActorPart = TypeVar("ActorPart")
"""What a member learns beside the critics: a learner of its actor network, or None."""


class SoftState(eqx.Module, Generic[ActorPart]):
    """All that a member of the family learns."""

    actor: ActorPart
    critic: Learner[Critic]
    target_critic: Critic
    temperature: Learner[Float[Array, ""]]
    """Its model is log alpha."""

    @property
    def alpha(self) -> Float[Array, ""]:
        """The temperature."""
        return jnp.exp(self.temperature.model)


@dataclass(frozen=True)
class Soft(OffPolicy[SoftState[ActorPart]]):
    """Settings of the soft actor-critic family."""

    tau: float = 0.005
    """Fraction by which the target critics move towards the online ones at each update."""
    critic_lr: float = 1e-3
    """Learning rate of the critics."""
    temperature: float | Literal["learned"] = "learned"
    """The temperature alpha: learned towards the entropy target, or fixed at a number."""
    temperature_lr: float = 3e-4
    """Learning rate of log alpha, where it is learned."""
    initial_temperature: float = 1.0
    """Where a learned alpha starts."""
    entropy_target: float | Literal["auto"] = "auto"
    """Entropy that a learned temperature aims at; auto is minus the number of action dimensions."""
    hidden: tuple[int, ...] = (256, 256)
    """Hidden widths of the actor, and of the joint critic or the auxiliary network U."""
    activation: Activation = "relu"
    """Activation of every network."""
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
        require(self, "in (0, 1]", lambda v: 0.0 < v <= 1.0, "tau")
        require(self, "positive", lambda v: v > 0, "critic_lr", "temperature_lr", "initial_temperature")
        require(self, "one or more positive widths", lambda v: v > 0, "hidden", "embedding", "subnetwork")
        require(self, "positive widths, or none", lambda v: v > 0, *(("encoder",) if self.encoder else ()))
        require(self, "positive or 'learned'", lambda v: v == "learned" or v > 0, "temperature")

    def init_soft(self, spec: Spec, key: Key[Array, ""], critic: CriticKind, actor: ActorPart) -> SoftState[ActorPart]:
        """A fresh state around the given actor."""
        critics = (self._decomposed if critic == "vdn-a" else self._joint)(spec, key)
        alpha = self.initial_temperature if self.temperature == "learned" else self.temperature
        return SoftState(
            actor,
            Learner.init(critics, optax.adam(self.critic_lr)),
            jax.tree.map(jnp.copy, critics),  # not the same buffers: the state is donated to the compiled step
            Learner.init(jnp.log(jnp.float32(alpha)), optax.adam(self.temperature_lr)),
        )

    def _joint(self, spec: Spec, key: Key[Array, ""]) -> Critic:
        return Joint.init(key, spec.obs_dim, spec.action_dim, self.hidden, self.activation)

    def _decomposed(self, spec: Spec, key: Key[Array, ""]) -> Critic:
        widths = (self.hidden, self.encoder, self.embedding, self.subnetwork)
        return Decomposed.init(key, spec.obs_dim, spec.action_dim, *widths, self.activation, self.decomposition)

    def step_critic(
        self, state: SoftState[ActorPart], batch: Transition, next_policy: TanhGaussian, key: Key[Array, ""]
    ) -> tuple[Learner[Critic], Critic, Metrics]:
        """The online critics after one TD step, and the targets that follow them."""
        next_action, next_log_prob = next_policy.sample(key)
        next_value = soft_value(state.target_critic(batch.next_obs, next_action), next_log_prob, state.alpha)
        return td_step(state.critic, state.target_critic, batch, next_value, self.gamma, self.critic_lr, self.tau)

    def step_temperature(
        self, state: SoftState[ActorPart], entropy: Float[Array, "batch"], action_dim: int
    ) -> tuple[Learner[Float[Array, ""]], Metrics]:
        """Log alpha after one step towards the entropy target."""
        metrics = {"alpha": state.alpha, "entropy": entropy.mean()}
        if self.temperature != "learned":
            return state.temperature, metrics
        target = -float(action_dim) if self.entropy_target == "auto" else self.entropy_target
        temperature, value, _ = state.temperature.step(
            optax.adam(self.temperature_lr), lambda log_alpha: (temperature_loss(log_alpha, entropy, target), None)
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

    def projected(self, critic: Critic, temperature: Learner[Float[Array, ""]]) -> ProjectedActor:
        """The projection of the policy that this critic and temperature define."""
        assert isinstance(critic, Decomposed)
        grid = Grid(self.integration_bound, self.simpson_intervals, self.chebyshev_points)
        return ProjectedActor(critic.marginals, temperature.model, grid)

    def project(
        self, critic: Critic, temperature: Learner[Float[Array, ""]], obs: Float[Array, "batch obs"]
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
