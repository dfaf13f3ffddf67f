"""Forward SAC: the policy is, or follows, the explicit forward-KL projection of exp(Q / alpha)."""

from dataclasses import dataclass
from typing import Any

import jax
from jaxtyping import Array, Key

from bisac.algos.base import Auto
from bisac.algos.learner import Learner
from bisac.algos.soft import Projecting, SoftState
from bisac.algos.td import norm_metrics
from bisac.nets.actors import GaussianActor, TanhGaussianActor
from bisac.ops.losses import Spread, projection_loss
from bisac.types import Metrics, Spec, Transition
from bisac.validate import require

ActorState = SoftState[Learner[GaussianActor]]


@dataclass(frozen=True)
class ForwardSAC(Projecting[None]):
    """Forward SAC, critic only: acts by the forward-KL projection itself, with no actor network."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "left out: there is no actor network to average", lambda v: v in ("auto", 0.0), "policy_average")

    def automatic(self) -> dict[str, Any]:
        """What auto stands for."""
        return super().automatic() | {"policy_average": 0.0}

    def init(self, spec: Spec, key: Key[Array, ""]) -> SoftState[None]:
        """Fresh critics."""
        return self.init_soft(spec, key, "vdn-a", None)

    def actor(self, state: SoftState[None]) -> TanhGaussianActor:
        """The projection of the online critics at the present temperature."""
        return self.projected(state.critic.fixed, state.temperature)

    def policy(self, state: SoftState[None]) -> TanhGaussianActor:
        """The same projection."""
        return self.actor(state)

    def update(self, state: SoftState[None], batch: Transition, key: Key[Array, ""]) -> tuple[SoftState[None], Metrics]:
        """Critics, then temperature: the policy follows by itself."""
        critic, metrics = self.step_critic(state, batch, self.actor(state)(batch.next_obs), key)

        def improve():
            policy, told = self.project(critic.fixed, state.temperature, batch.obs)
            temperature, temperature_metrics = self.step_temperature(state, policy.entropy(), batch.action.shape[-1])
            return (None, temperature), told | temperature_metrics

        return self.step_policy(state, critic, metrics, improve)


@dataclass(frozen=True)
class ForwardSACActor(Projecting[Learner[GaussianActor]]):
    """Forward SAC with an actor: a network regresses onto the mean and spread of the forward-KL projection."""

    spread: Spread = "std"
    """How widths are compared: standard deviation, variance (the paper's), or the exact forward KL."""
    actor_lr: float | Auto = "auto"
    """Learning rate of the actor; auto is 3e-4, with normalised critics 1e-3."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "positive or 'auto'", lambda v: v == "auto" or v > 0, "actor_lr")

    def automatic(self) -> dict[str, Any]:
        """What auto stands for."""
        return super().automatic() | {"actor_lr": 1e-3 if self.critic_norm == "batch" else 3e-4}

    def init(self, spec: Spec, key: Key[Array, ""]) -> ActorState:
        """Fresh networks."""
        actor_key, critic_key = jax.random.split(key)
        actor = GaussianActor.init(actor_key, spec.obs_dim, spec.action_dim, self.hidden, self.activation)
        return self.init_soft(spec, critic_key, "vdn-a", self.learner(actor, self.actor_lr))

    def actor(self, state: ActorState) -> TanhGaussianActor:
        """The actor network."""
        return state.actor.fixed

    def policy(self, state: ActorState) -> TanhGaussianActor:
        """The actor network, averaged."""
        return state.actor.averaged

    def update(self, state: ActorState, batch: Transition, key: Key[Array, ""]) -> tuple[ActorState, Metrics]:
        """Critics, then actor towards the projection, then temperature."""
        critic, metrics = self.step_critic(state, batch, self.actor(state)(batch.next_obs), key)

        def improve():
            projected, told = self.project(critic.fixed, state.temperature, batch.obs)

            def loss(actor: GaussianActor):
                policy, seen = actor.on_batch(batch.obs)
                parts = projection_loss(policy, projected, self.spread)
                return parts.mean + parts.spread, (policy, parts, seen)

            actor, actor_loss, (policy, parts, seen) = state.actor.step(self.adam(self.actor_lr), loss)
            temperature, temperature_metrics = self.step_temperature(state, policy.entropy(), batch.action.shape[-1])
            told |= {"actor_loss": actor_loss, "penalty_mean": parts.mean, "penalty_spread": parts.spread}
            told |= temperature_metrics | norm_metrics("actor", state.actor.moments, seen)
            return (self.stepped(actor, seen), temperature), told

        return self.step_policy(state, critic, metrics, improve)
