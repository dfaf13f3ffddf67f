"""Soft Actor-Critic: the policy descends the reverse KL divergence from exp(Q / alpha)."""

from dataclasses import dataclass

import jax
import optax
from jaxtyping import Array, Key

from bisac.algos.base import require
from bisac.algos.soft import CriticKind, Soft, SoftState
from bisac.learner import Learner
from bisac.nets.actors import GaussianActor
from bisac.ops.losses import reverse_kl_loss
from bisac.types import Metrics, Spec, Transition

State = SoftState[Learner[GaussianActor]]


@dataclass(frozen=True)
class SAC(Soft[Learner[GaussianActor]]):
    """Soft Actor-Critic: minimises alpha KL(pi || exp(Q / alpha)) by reparameterised gradients."""

    critic: CriticKind = "joint"
    """One network on state and action, or VDN-a (the ablation that separates the critic's effect)."""
    actor_lr: float = 3e-4
    """Learning rate of the actor."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "positive", lambda v: v > 0, "actor_lr")

    def init(self, spec: Spec, key: Key[Array, ""]) -> State:
        """Fresh networks."""
        actor_key, critic_key = jax.random.split(key)
        actor = GaussianActor.init(actor_key, spec.obs_dim, spec.action_dim, self.hidden, self.activation)
        return self.init_soft(spec, critic_key, self.critic, Learner.init(actor, optax.adam(self.actor_lr)))

    def actor(self, state: State) -> GaussianActor:
        """The actor network."""
        return state.actor.model

    def update(self, state: State, batch: Transition, key: Key[Array, ""]) -> tuple[State, Metrics]:
        """Critics, then actor, then temperature."""
        next_key, actor_key = jax.random.split(key)
        critic, target_critic, critic_metrics = self.step_critic(
            state, batch, self.actor(state)(batch.next_obs), next_key
        )

        def loss(actor: GaussianActor):
            action, log_prob = actor(batch.obs).sample(actor_key)
            return reverse_kl_loss(log_prob, critic.model(batch.obs, action), state.alpha), log_prob

        actor, actor_loss, log_prob = state.actor.step(optax.adam(self.actor_lr), loss)
        temperature, temperature_metrics = self.step_temperature(state, -log_prob, batch.action.shape[-1])
        metrics = {"actor_loss": actor_loss} | critic_metrics | temperature_metrics
        return SoftState(actor, critic, target_critic, temperature), metrics
