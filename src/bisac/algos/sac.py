"""Soft Actor-Critic: the policy descends the reverse KL divergence from exp(Q / alpha)."""

from dataclasses import dataclass
from typing import Any

import jax
from jaxtyping import Array, Key

from bisac.algos.base import Auto
from bisac.algos.learner import Learner
from bisac.algos.soft import CriticKind, Soft, SoftState
from bisac.algos.td import CriticNorm, in_rewards, norm_metrics
from bisac.nets.actors import GaussianActor
from bisac.ops.losses import reverse_kl_loss
from bisac.types import Metrics, Spec, Transition
from bisac.validate import require

State = SoftState[Learner[GaussianActor]]


@dataclass(frozen=True)
class SAC(Soft[Learner[GaussianActor]]):
    """Soft Actor-Critic: minimises alpha KL(pi || exp(Q / alpha)) by reparameterised gradients."""

    critic_norm: CriticNorm = "batch"
    """Normalise critics and actor, each over its own batch, without targets (batch); or classic networks (none)."""
    critic: CriticKind = "joint"
    """One network on state and action, or VDN-a (the ablation that separates the critic's effect)."""
    actor_lr: float | Auto = "auto"
    """Learning rate of the actor; auto is 3e-4, with normalised critics 1e-3."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "positive or 'auto'", lambda v: v == "auto" or v > 0, "actor_lr")

    def automatic(self) -> dict[str, Any]:
        """What auto stands for."""
        return super().automatic() | {"actor_lr": 1e-3 if self.critic_norm == "batch" else 3e-4}

    def init(self, spec: Spec, key: Key[Array, ""]) -> State:
        """Fresh networks."""
        actor_key, critic_key = jax.random.split(key)
        actor = GaussianActor.init(actor_key, spec.obs_dim, spec.action_dim, self.hidden, self.activation)
        return self.init_soft(spec, critic_key, self.critic, self.learner(actor, self.actor_lr))

    def actor(self, state: State) -> GaussianActor:
        """The actor network."""
        return state.actor.fixed

    def policy(self, state: State) -> GaussianActor:
        """The actor network, averaged."""
        return state.actor.averaged

    def update(self, state: State, batch: Transition, key: Key[Array, ""]) -> tuple[State, Metrics]:
        """Critics, then actor, then temperature."""
        next_key, actor_key = jax.random.split(key)
        critic, metrics = self.step_critic(state, batch, self.actor(state)(batch.next_obs), next_key)

        def loss(actor: GaussianActor):
            policy, seen = actor.on_batch(batch.obs)
            action, log_prob = policy.sample(actor_key)
            return reverse_kl_loss(log_prob, critic.fixed(batch.obs, action), state.alpha), (log_prob, seen)

        def improve():
            actor, actor_loss, (log_prob, seen) = state.actor.step(self.adam(self.actor_lr), loss)
            temperature, told = self.step_temperature(state, -log_prob, batch.action.shape[-1])
            told |= {"actor_loss": in_rewards(actor_loss, state.reward_unit)}
            return (self.stepped(actor, seen), temperature), told | norm_metrics("actor", state.actor.moments, seen)

        return self.step_policy(state, critic, metrics, improve)
