"""Forward SAC: the policy is, or follows, the explicit forward-KL projection of exp(Q / alpha)."""

from dataclasses import dataclass

import jax
import optax
from jaxtyping import Array, Key

from bisac.algos.base import require
from bisac.algos.soft import Projecting, SoftState
from bisac.learner import Learner
from bisac.nets.actors import GaussianActor, TanhGaussianActor
from bisac.ops.losses import Spread, projection_loss
from bisac.types import Metrics, Spec, Transition

ActorState = SoftState[Learner[GaussianActor]]


@dataclass(frozen=True)
class ForwardSAC(Projecting[None]):
    """Forward SAC, critic only: acts by the forward-KL projection itself, with no actor network."""

    def init(self, spec: Spec, key: Key[Array, ""]) -> SoftState[None]:
        """Fresh critics."""
        return self.init_soft(spec, key, "vdn-a", None)

    def actor(self, state: SoftState[None]) -> TanhGaussianActor:
        """The projection of the online critics at the present temperature."""
        return self.projected(state.critic.model, state.temperature)

    def update(self, state: SoftState[None], batch: Transition, key: Key[Array, ""]) -> tuple[SoftState[None], Metrics]:
        """Critics, then temperature: the policy follows by itself."""
        critic, target_critic, critic_metrics = self.step_critic(state, batch, self.actor(state)(batch.next_obs), key)
        policy, projection_metrics = self.project(critic.model, state.temperature, batch.obs)
        temperature, temperature_metrics = self.step_temperature(state, policy.entropy(), batch.action.shape[-1])
        metrics = critic_metrics | projection_metrics | temperature_metrics
        return SoftState(None, critic, target_critic, temperature), metrics


@dataclass(frozen=True)
class ForwardSACActor(Projecting[Learner[GaussianActor]]):
    """Forward SAC with an actor: a network regresses onto the mean and spread of the forward-KL projection."""

    spread: Spread = "std"
    """How widths are compared: standard deviation, variance (the paper's), or the exact forward KL."""
    actor_lr: float = 3e-4
    """Learning rate of the actor."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "positive", lambda v: v > 0, "actor_lr")

    def init(self, spec: Spec, key: Key[Array, ""]) -> ActorState:
        """Fresh networks."""
        actor_key, critic_key = jax.random.split(key)
        actor = GaussianActor.init(actor_key, spec.obs_dim, spec.action_dim, self.hidden, self.activation)
        return self.init_soft(spec, critic_key, "vdn-a", Learner.init(actor, optax.adam(self.actor_lr)))

    def actor(self, state: ActorState) -> TanhGaussianActor:
        """The actor network."""
        return state.actor.model

    def update(self, state: ActorState, batch: Transition, key: Key[Array, ""]) -> tuple[ActorState, Metrics]:
        """Critics, then actor towards the projection, then temperature."""
        critic, target_critic, critic_metrics = self.step_critic(state, batch, self.actor(state)(batch.next_obs), key)
        projected, projection_metrics = self.project(critic.model, state.temperature, batch.obs)

        def loss(actor: GaussianActor):
            policy = actor(batch.obs)
            parts = projection_loss(policy, projected, self.spread)
            return parts.mean + parts.spread, (policy, parts)

        actor, actor_loss, (policy, parts) = state.actor.step(optax.adam(self.actor_lr), loss)
        temperature, temperature_metrics = self.step_temperature(state, policy.entropy(), batch.action.shape[-1])
        metrics = {"actor_loss": actor_loss, "penalty_mean": parts.mean, "penalty_spread": parts.spread}
        metrics |= critic_metrics | projection_metrics | temperature_metrics
        return SoftState(actor, critic, target_critic, temperature), metrics
