"""Bidirectional SAC: reverse KL refines the policy in the neighbourhood of the forward-KL projection."""

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from bisac.algos.base import require
from bisac.algos.soft import Projecting, SoftState
from bisac.learner import Learner
from bisac.nets.actors import CorrectedActor, GaussianActor, TanhGaussianActor, corrected_gaussian
from bisac.nets.mlp import MLP
from bisac.ops.gaussian import TanhGaussian
from bisac.ops.losses import ProjectionLoss, Spread, projection_loss, reverse_kl_loss
from bisac.types import Metrics, Spec, Transition

Refinement = Literal["penalty", "correction"]
"""How the projection and the reverse KL meet. `penalty`: an actor network minimises L_r + alpha epsilon L_f, which is
alpha times the paper's KL(pi || q) + epsilon L_f. `correction`: the policy is the projection plus a learned correction,
which minimises the same, with its own size for L_f."""


State = SoftState[Learner[GaussianActor | MLP]]
"""What is learned beside the critics: an actor, or a correction."""


@dataclass(frozen=True)
class BidirectionalSAC(Projecting[Learner[GaussianActor | MLP]]):
    """Bidirectional SAC: minimises alpha (KL(pi || q) + epsilon times the distance from the forward-KL projection)."""

    epsilon: float = 0.1
    """Weight of the distance from the projection, beside KL(pi || q); 0 leaves it out."""
    refinement: Refinement = "penalty"
    """An actor drawn towards the projection (the paper's equation), or the projection plus a learned correction."""
    spread: Spread = "std"
    """Penalty: how widths are compared: standard deviation, variance (the paper's), or the exact forward KL."""
    actor_lr: float = 3e-4
    """Learning rate of the actor, or of the correction."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "positive", lambda v: v > 0, "actor_lr")
        require(self, "0 or positive", lambda v: v >= 0, "epsilon")

    def init(self, spec: Spec, key: Key[Array, ""]) -> State:
        """Fresh networks."""
        actor_key, critic_key = jax.random.split(key)
        make = GaussianActor.init if self.refinement == "penalty" else CorrectedActor.init_correction
        actor: GaussianActor | MLP = make(actor_key, spec.obs_dim, spec.action_dim, self.hidden, self.activation)
        return self.init_soft(spec, critic_key, "vdn-a", Learner.init(actor, optax.adam(self.actor_lr)))

    def actor(self, state: State) -> TanhGaussianActor:
        """The actor network, or the projection and its correction."""
        model = state.actor.model
        if isinstance(model, GaussianActor):
            return model
        return CorrectedActor(self.projected(state.critic.model, state.temperature), model)

    def update(self, state: State, batch: Transition, key: Key[Array, ""]) -> tuple[State, Metrics]:
        """Critics, then actor near the projection, then temperature."""
        next_key, actor_key = jax.random.split(key)
        critic, target_critic, critic_metrics = self.step_critic(
            state, batch, self.actor(state)(batch.next_obs), next_key
        )
        projected, projection_metrics = self.project(critic.model, state.temperature, batch.obs)

        def loss(actor: GaussianActor | MLP):
            policy, distance = self._refined(actor, projected, batch.obs)
            action, log_prob = policy.sample(actor_key)
            reverse = reverse_kl_loss(log_prob, critic.model(batch.obs, action), state.alpha)
            # L_r is alpha KL, and so is its neighbour: rewards on another scale then change nothing.
            return reverse + state.alpha * self.epsilon * (distance.mean + distance.spread), (log_prob, distance)

        actor, actor_loss, (log_prob, distance) = state.actor.step(optax.adam(self.actor_lr), loss)
        temperature, temperature_metrics = self.step_temperature(state, -log_prob, batch.action.shape[-1])
        metrics = {"actor_loss": actor_loss, "penalty_mean": distance.mean, "penalty_spread": distance.spread}
        metrics |= critic_metrics | projection_metrics | temperature_metrics
        return SoftState(actor, critic, target_critic, temperature), metrics

    def _refined(
        self, actor: GaussianActor | MLP, projected: TanhGaussian, obs: Float[Array, "batch obs"]
    ) -> tuple[TanhGaussian, ProjectionLoss]:
        """The policy and its distance from the projection."""
        if isinstance(actor, GaussianActor):
            policy = actor(obs)
            return policy, projection_loss(policy, projected, self.spread)
        d, c = CorrectedActor.offsets(actor, obs)
        distance = ProjectionLoss(jnp.square(d).sum(-1).mean(), jnp.square(c).sum(-1).mean())
        return corrected_gaussian(projected, d, c), distance
