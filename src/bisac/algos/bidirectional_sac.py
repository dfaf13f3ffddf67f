"""Bidirectional SAC: reverse KL refines the policy in the neighbourhood of the forward-KL projection."""

from dataclasses import dataclass, field
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from bisac.algos.base import Auto
from bisac.algos.learner import Learner
from bisac.algos.soft import Projecting, SoftState
from bisac.algos.td import auto
from bisac.nets.actors import CorrectedActor, GaussianActor, TanhGaussianActor, corrected_gaussian
from bisac.nets.mlp import MLP
from bisac.nets.normalisation import Moments
from bisac.ops.gaussian import TanhGaussian
from bisac.ops.losses import ProjectionLoss, Spread, projection_loss, reverse_kl_loss
from bisac.types import Metrics, Spec, Transition
from bisac.validate import require

Refinement = Literal["penalty", "correction"]
"""How the projection and the reverse KL meet. `penalty`: an actor network minimises L_r + alpha epsilon L_f, which is
alpha times the paper's KL(pi || q) + epsilon L_f. `correction`: the policy is the projection plus a learned correction,
which minimises the same, with its own size for L_f."""

State = SoftState[Learner[GaussianActor | MLP]]
"""The agent of Bidirectional SAC, which learns an actor or a correction beside the critics."""


@dataclass(frozen=True)
class BidirectionalSAC(Projecting[Learner[GaussianActor | MLP]]):
    """Bidirectional SAC: minimises alpha (KL(pi || q) + epsilon times the distance from the forward-KL projection)."""

    epsilon: float = 0.1
    """Weight of the distance from the projection, beside KL(pi || q); 0 leaves it out."""
    refinement: Refinement = "penalty"
    """An actor drawn towards the projection (the paper's equation), or the projection plus a learned correction."""
    spread: Spread = "std"
    """Penalty: how widths are compared: standard deviation, variance (the paper's), or the exact forward KL."""
    actor_lr: float | Auto = field(default="auto", metadata=auto(classic=3e-4, normalised=1e-3))
    """Learning rate of the actor, or of the correction; auto is 3e-4, with normalised critics 1e-3."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "positive or 'auto'", lambda v: v == "auto" or v > 0, "actor_lr")
        require(self, "0 or positive", lambda v: v >= 0, "epsilon")

    def init(self, spec: Spec, key: Key[Array, ""]) -> State:
        """Return a fresh agent: an actor or a correction, VDN-a critics and the temperature."""
        actor_key, critic_key = jax.random.split(key)
        make = GaussianActor.init if self.refinement == "penalty" else CorrectedActor.init_correction
        actor: GaussianActor | MLP = make(actor_key, spec.obs_dim, spec.action_dim, self.hidden, self.activation)
        return self.init_soft(spec, critic_key, "vdn-a", self.learner(actor, self.actor_lr))

    def actor(self, state: State) -> TanhGaussianActor:
        """Return the actor network as it stands, or the projection with its correction."""
        return self._acting(state, state.actor.fixed)

    def policy(self, state: State) -> TanhGaussianActor:
        """Return the actor network averaged over its last steps, or the projection with its correction so averaged."""
        return self._acting(state, state.actor.averaged)

    def _acting(self, state: State, model: GaussianActor | MLP) -> TanhGaussianActor:
        return model if isinstance(model, GaussianActor) else CorrectedActor(self.projected(state), model)

    def update(self, state: State, batch: Transition, key: Key[Array, ""]) -> tuple[State, Metrics]:
        """Step the critics; then, when it is due, the actor by reverse KL near the projection, and the temperature."""
        next_key, actor_key = jax.random.split(key)
        state, critic_metrics = self.step_critic(state, batch, next_key)

        def improve():
            projected, told = self.project(state, batch.obs)

            def loss(actor: GaussianActor | MLP):
                policy, distance, seen = self._refined(actor, projected, batch.obs)
                action, log_prob = policy.sample(actor_key)
                reverse = reverse_kl_loss(log_prob, state.critic.fixed(batch.obs, action), state.alpha)
                # L_r is alpha KL, and so is its neighbour: rewards on another scale then change nothing.
                forward = state.alpha * self.epsilon * (distance.mean + distance.spread)
                return reverse + forward, ((log_prob, distance), seen)

            actor, found, actor_told = self.step_actor(state.actor, self.actor_lr, loss, state.reward_unit)
            log_prob, distance = found
            temperature, temperature_told = self.step_temperature(state, -log_prob, batch.action.shape[-1])
            return (actor, temperature), told | distance.metrics() | actor_told | temperature_told

        improved, policy_metrics = self.when_due(state, improve)
        return improved, policy_metrics | critic_metrics

    def _refined(
        self, actor: GaussianActor | MLP, projected: TanhGaussian, obs: Float[Array, "batch obs"]
    ) -> tuple[TanhGaussian, ProjectionLoss, tuple[Moments, ...]]:
        """Return the policy in training, its distance from the projection, and the batch's moments in its network."""
        if isinstance(actor, GaussianActor):
            policy, seen = actor.on_batch(obs)
            return policy, projection_loss(policy, projected, self.spread), seen
        output, seen = actor.on_batch(obs)
        d, c = CorrectedActor.offsets(output)
        distance = ProjectionLoss(jnp.square(d).sum(-1).mean(), jnp.square(c).sum(-1).mean())
        return corrected_gaussian(projected, d, c), distance, seen
