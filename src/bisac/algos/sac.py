"""Soft Actor-Critic: the policy descends the reverse KL divergence from exp(Q / alpha)."""

from dataclasses import dataclass, field

import jax
from jaxtyping import Array, Key

from bisac.algos.base import EARLIER, number
from bisac.algos.learner import Learner
from bisac.algos.schedule import KIND, LearningRate, is_rate_or_auto
from bisac.algos.search import between
from bisac.algos.soft import CriticKind, Improved, Soft, SoftState
from bisac.algos.td import CriticNorm, auto
from bisac.nets.actors import GaussianActor
from bisac.ops.losses import reverse_kl_loss
from bisac.types import Metrics, Spec, Transition
from bisac.validate import require

State = SoftState[Learner[GaussianActor]]
"""SAC's agent."""


@dataclass(frozen=True)
class SAC(Soft[Learner[GaussianActor]]):
    """Soft Actor-Critic: minimises alpha KL(pi || exp(Q / alpha)) by reparameterised gradients."""

    critic_norm: CriticNorm = field(default="batch", metadata={EARLIER: "none"})
    """Normalise critics and actor, each over its own batch, without targets (batch); or classic networks (none)."""
    critic: CriticKind = "joint"
    """One network on state and action, or VDN-a (the ablation that separates the critic's effect)."""
    actor_lr: LearningRate = field(
        default="auto", metadata=auto(classic=3e-4, normalised=1e-3) | between(1e-4, 3e-3, log=True)
    )
    """Learning rate of the actor, or linear:FROM:TO:UPDATES; auto is 3e-4, with normalised critics 1e-3."""

    def __post_init__(self):
        super().__post_init__()
        require(self, f"auto, {KIND}", is_rate_or_auto, "actor_lr")

    def init(self, spec: Spec, key: Key[Array, ""]) -> State:
        """Return a fresh agent: an actor, critics of the chosen kind, and the temperature."""
        actor_key, critic_key = jax.random.split(key)
        actor = GaussianActor.init(actor_key, spec.obs_dim, spec.action_dim, self.hidden, self.activation)
        return self.init_soft(spec, critic_key, self.critic, self.learner(actor, self.actor_lr))

    def actor(self, state: State) -> GaussianActor:
        """Return the actor network as it stands."""
        return state.actor.fixed

    def policy(self, state: State) -> GaussianActor:
        """Return the actor network averaged over its last steps."""
        return state.actor.averaged

    def update(self, state: State, batch: Transition, key: Key[Array, ""]) -> tuple[State, Metrics]:
        """Step the critics; then, when it is due, the actor by reverse KL, and the temperature."""
        next_key, actor_key = jax.random.split(key)
        state, critic_metrics = self.step_critic(state, batch, next_key)

        def loss(actor: GaussianActor):
            policy, seen = actor.on_batch(batch.obs)
            action, log_prob = policy.sample(actor_key)
            q = state.critic.fixed(batch.obs, action)
            return reverse_kl_loss(log_prob, q, state.alpha), (log_prob, seen)

        def improve():
            actor, log_prob, told = self.step_actor(
                state.actor, self.actor_lr, loss, state.reward_unit, number(self.policy_delay)
            )
            temperature, temperature_told = self.step_temperature(state, -log_prob, batch.action.shape[-1])
            return Improved(actor, temperature), told | temperature_told

        improved, policy_metrics = self.when_due(state, improve)
        return improved, policy_metrics | critic_metrics
