"""Bidirectional SAC: reverse KL refines the policy in the neighbourhood of the forward-KL projection."""

from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from bisac.algos.base import EARLIER, number
from bisac.algos.distillation import distil
from bisac.algos.learner import Learner
from bisac.algos.projecting import Projecting
from bisac.algos.schedule import KIND, LearningRate, is_rate_or_auto
from bisac.algos.search import between
from bisac.algos.soft import CriticKind, Improved, SoftState
from bisac.algos.td import CriticNorm, auto
from bisac.nets.actors import GaussianActor
from bisac.nets.additive import Additive
from bisac.ops.gaussian import TanhGaussian
from bisac.ops.losses import Spread, projection_loss, reverse_kl_loss
from bisac.types import Metrics, Spec, Transition
from bisac.validate import require

NEGLIGIBLE = 1e-3
"""An epsilon that has fallen to this or less no longer counts."""


class Guide(NamedTuple):
    """The projection as it counts in the loss of the actor, at each state of a batch."""

    projected: TanhGaussian
    """The projected policy."""
    followed: Float[Array, "batch"] | None
    """1 at the states where it counts, else 0; None where it always counts."""
    weight: Float[Array, ""]
    """Epsilon as it is now."""


State = SoftState[Learner[GaussianActor]]
"""The agent of Bidirectional SAC."""


@dataclass(frozen=True)
class BidirectionalSAC(Projecting[Learner[GaussianActor]]):
    """Bidirectional SAC: minimises alpha (KL(pi || q) + epsilon times the distance from the forward-KL projection)."""

    critic_norm: CriticNorm = field(default="batch", metadata={EARLIER: "none"})
    """Normalise critics and actor, each over its own batch, without targets (batch); or classic networks (none)."""
    critic: CriticKind = field(default="joint", metadata={EARLIER: "vdn-a"})
    """SAC's joint one, from whose Q the marginals are distilled, or VDN-a, whose subnetworks they are (the paper's)."""
    epsilon: float = field(default=10.0, metadata=between(0.1, 30.0, log=True))
    """Weight of the distance from the projection, beside KL(pi || q); 0 leaves it out."""
    epsilon_half_life: float | Literal["none"] = field(
        default=2000.0, metadata={EARLIER: "none"} | between(500.0, 20_000.0, log=True)
    )
    """Updates in which epsilon falls to half, again and again: forward first, reverse afterwards; none: it stays."""
    margin: float | Literal["none"] = field(default=1.0, metadata={EARLIER: "none"})
    """Nats per action dimension by which both twins must give the projection the smaller KL(pi || q) at a state, for
    the state to favour it; none: the projection counts everywhere, as in the paper."""
    quorum: float = field(default=0.2, metadata={EARLIER: 0.1})
    """Share of a batch's states that must favour the projection, by the margin, for it to count at those that do; while
    fewer do, which chance may bring about, the update is SAC's. Without a margin it has no effect."""
    patience: int = field(default=200, metadata={EARLIER: 0})
    """Updates before the projection may count: critics as new as that favour anything, and the update is SAC's.
    Without a margin it has no effect."""
    spread: Spread = "kl"
    """How widths are compared: by the exact forward KL, the standard deviation, or the variance (the paper's)."""
    actor_lr: LearningRate = field(
        default="auto", metadata=auto(classic=3e-4, normalised=1e-3) | between(1e-4, 3e-3, log=True)
    )
    """Learning rate of the actor, or linear:FROM:TO:UPDATES; auto is 3e-4, with normalised critics 1e-3."""

    def __post_init__(self):
        super().__post_init__()
        require(self, f"auto, {KIND}", is_rate_or_auto, "actor_lr")
        require(self, "0 or positive", lambda v: v >= 0, "epsilon")
        require(self, "positive, or 'none'", lambda v: v == "none" or v > 0, "epsilon_half_life")
        require(self, "0 or positive, or 'none'", lambda v: v == "none" or v >= 0, "margin")
        require(self, "from 0 to 1", lambda v: 0 <= v <= 1, "quorum")
        require(self, "0 or positive", lambda v: v >= 0, "patience")

    def init(self, spec: Spec, key: Key[Array, ""]) -> State:
        """Return a fresh agent: an actor, critics of the chosen kind, their marginals and the temperature."""
        actor_key, critic_key = jax.random.split(key)
        actor = GaussianActor.init(actor_key, spec.obs_dim, spec.action_dim, self.hidden, self.activation)
        return self.init_soft(
            spec, critic_key, self.critic, self.learner(actor, self.actor_lr), self._fresh_marginals(spec, critic_key)
        )

    def _fresh_marginals(self, spec: Spec, key: Key[Array, ""]) -> Learner[Additive] | None:
        if self.critic == "vdn-a":
            return None
        key = jax.random.fold_in(key, 1)  # not the critics' own, which are SAC's
        model = Additive.init(key, spec.obs_dim, spec.action_dim, self.hidden[:1], self.activation)
        return Learner.init(self.network(model), self.adam(self.critic_lr))

    def actor(self, state: State) -> GaussianActor:
        """Return the actor network as it stands."""
        return state.actor.fixed

    def policy(self, state: State) -> GaussianActor:
        """Return the actor network averaged over its last steps."""
        return state.actor.averaged

    def update(self, state: State, batch: Transition, key: Key[Array, ""]) -> tuple[State, Metrics]:
        """Step the critics; then, when it is due, the actor by reverse KL near the projection, and the temperature."""
        next_key, actor_key = jax.random.split(key)
        draw_key, judge_key = jax.random.split(jax.random.fold_in(key, 2))
        state, critic_metrics = self.step_critic(state, batch, next_key)

        def improve():
            marginals, guide, told = self._guide(state, batch.obs, draw_key, judge_key)

            def loss(actor: GaussianActor):
                policy, seen = actor.on_batch(batch.obs)
                distance = projection_loss(policy, guide.projected, self.spread, guide.followed)
                action, log_prob = policy.sample(actor_key)
                reverse = reverse_kl_loss(log_prob, state.critic.fixed(batch.obs, action), state.alpha)
                # L_r is alpha KL, and so is its neighbour: rewards on another scale then change nothing.
                forward = state.alpha * guide.weight * (distance.mean + distance.spread)
                return reverse + forward, ((log_prob, distance), seen)

            actor, found, actor_told = self.step_actor(
                state.actor, self.actor_lr, loss, state.reward_unit, number(self.policy_delay)
            )
            log_prob, distance = found
            temperature, temperature_told = self.step_temperature(state, -log_prob, batch.action.shape[-1])
            told |= distance.metrics() | actor_told | temperature_told
            return Improved(actor, temperature, marginals), told

        improved, policy_metrics = self.when_due(state, improve)
        return improved, policy_metrics | critic_metrics

    def _guide(
        self, state: State, obs: Float[Array, "batch obs"], draw_key: Key[Array, ""], judge_key: Key[Array, ""]
    ) -> tuple[Learner[Additive] | None, Guide, Metrics]:
        """Return the marginals one step on, and the projection as it counts in the actor's loss.

        Once epsilon has fallen to next to nothing, the marginals rest, and the update costs what SAC's does.
        """
        weight = self.weight(state)

        def project():
            marginals, told = self._distilled(state, obs, draw_key)
            projected, projected_told = self.project(replace(state, marginals=marginals), obs)
            followed, judged_told = self._followed(state, projected, obs, judge_key)
            return marginals, Guide(projected, followed, weight), told | projected_told | judged_told

        if self.epsilon_half_life == "none":
            return project()
        _, shapes, told_shapes = jax.eval_shape(project)

        def rest():
            told = {name: jnp.zeros(told.shape, told.dtype) for name, told in told_shapes.items()}
            followed = None if shapes.followed is None else jnp.zeros_like(obs[:, 0])
            return state.marginals, Guide(self.actor(state)(obs), followed, jnp.zeros_like(weight)), told

        marginals, guide, told = jax.lax.cond(weight > NEGLIGIBLE, project, rest)
        return marginals, guide, told | {"epsilon": guide.weight}

    def weight(self, state: State) -> Float[Array, ""]:
        """Return epsilon as it is after the agent's updates so far."""
        epsilon = jnp.float32(self.epsilon)
        if self.epsilon_half_life == "none":
            return epsilon
        return epsilon * jnp.exp2(-self.updates(state).astype(jnp.float32) / self.epsilon_half_life)

    def updates(self, state: State) -> Int[Array, ""]:
        """Return the agent's updates, up to the actor's next turn: its optimiser has counted them."""
        return number(self.policy_delay) * optax.tree_utils.tree_get(state.actor.opt_state, "count")

    def _distilled(
        self, state: State, obs: Float[Array, "batch obs"], key: Key[Array, ""]
    ) -> tuple[Learner[Additive] | None, Metrics]:
        """Return the marginals one step closer to the joint Q, and how much of it they miss; VDN-a has its own."""
        if state.marginals is None:
            return None, {}
        policy = self.actor(state)(obs)
        optimiser = self.adam(self.critic_lr, number(self.policy_delay))
        return distil(state.marginals, optimiser, state.critic.fixed, policy, obs, key)

    def _followed(
        self, state: State, projected: TanhGaussian, obs: Float[Array, "batch obs"], key: Key[Array, ""]
    ) -> tuple[Float[Array, "batch"] | None, Metrics]:
        """Return 1 at the states where the projection counts, else 0, and shares; None where it always counts.

        It counts where KL(pi || q) of the projection is smaller than that of the policy, by the margin: the forward
        direction proposes, the reverse one judges. Each divergence is that of one sample, up to the same constant, for
        each of the twins. The policy's smaller one stands against the projection's larger one, so the projection counts
        only where the twins agree that it is better: far from the data they seldom do. And as one sample is often
        wrong, it counts nowhere unless a quorum of the batch favours it; nor in the first updates, when critics know
        nothing yet.
        """
        if self.margin == "none":
            return None, {}

        def divergence(policy: TanhGaussian, key: Key[Array, ""]) -> Float[Array, "twin batch"]:
            action, log_prob = policy.sample(key)
            return log_prob[None] - state.critic.fixed(obs, action) / state.alpha

        policy_key, projected_key = jax.random.split(key)
        present = divergence(self.actor(state)(obs), policy_key).min(axis=0)
        proposed = divergence(projected, projected_key).max(axis=0)
        favoured = (present - proposed > self.margin * projected.mean.shape[-1]).astype(present.dtype)
        heard = (favoured.mean() >= self.quorum) & (self.updates(state) >= self.patience)
        followed = jnp.where(heard, favoured, 0.0)
        return followed, {"projection_favoured": favoured.mean(), "projection_followed": followed.mean()}
