"""Forward SAC: the policy is, or follows, the explicit forward-KL projection of exp(Q / alpha)."""

from dataclasses import dataclass, field

import jax
from jaxtyping import Array, Key

from bisac.algos.base import Auto, number
from bisac.algos.learner import Learner
from bisac.algos.projecting import Projecting
from bisac.algos.schedule import KIND, LearningRate, is_rate_or_auto
from bisac.algos.search import between
from bisac.algos.soft import Improved, SoftState
from bisac.algos.td import auto
from bisac.nets.actors import GaussianActor, ProjectedActor
from bisac.ops.losses import Spread, projection_loss
from bisac.types import Metrics, Spec, Transition
from bisac.validate import require

ActorState = SoftState[Learner[GaussianActor]]
"""The agent of Forward SAC with an actor."""


@dataclass(frozen=True)
class ForwardSAC(Projecting[None]):
    """Forward SAC, critic only: acts by the forward-KL projection itself, with no actor network."""

    policy_average: float | Auto = field(default="auto", metadata=auto(classic=0.0, normalised=0.0))
    """Always 0: there is no actor network to average."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "left out: there is no actor network to average", lambda v: v in ("auto", 0.0), "policy_average")

    def init(self, spec: Spec, key: Key[Array, ""]) -> SoftState[None]:
        """Return a fresh agent: VDN-a critics and the temperature."""
        return self.init_soft(spec, key, "vdn-a", None)

    def actor(self, state: SoftState[None]) -> ProjectedActor:
        """Return the projection of the online critics at the present temperature."""
        return self.projected(state)

    def policy(self, state: SoftState[None]) -> ProjectedActor:
        """Return the same projection: there is no network to average."""
        return self.projected(state)

    def update(self, state: SoftState[None], batch: Transition, key: Key[Array, ""]) -> tuple[SoftState[None], Metrics]:
        """Step the critics; then, when it is due, the temperature. The policy follows by itself."""
        state, critic_metrics = self.step_critic(state, batch, key)

        def improve():
            policy, told = self.project(state, batch.obs)
            temperature, temperature_told = self.step_temperature(state, policy.entropy(), batch.action.shape[-1])
            return Improved(None, temperature), told | temperature_told

        improved, policy_metrics = self.when_due(state, improve)
        return improved, policy_metrics | critic_metrics


@dataclass(frozen=True)
class ForwardSACActor(Projecting[Learner[GaussianActor]]):
    """Forward SAC with an actor: a network regresses onto the mean and spread of the forward-KL projection."""

    spread: Spread = "std"
    """How widths are compared: standard deviation, variance (the paper's), or the exact forward KL."""
    actor_lr: LearningRate = field(
        default="auto", metadata=auto(classic=3e-4, normalised=1e-3) | between(1e-4, 3e-3, log=True)
    )
    """Learning rate of the actor, or linear:FROM:TO:UPDATES; auto is 3e-4, with normalised critics 1e-3."""

    def __post_init__(self):
        super().__post_init__()
        require(self, f"auto, {KIND}", is_rate_or_auto, "actor_lr")

    def init(self, spec: Spec, key: Key[Array, ""]) -> ActorState:
        """Return a fresh agent: an actor, VDN-a critics and the temperature."""
        actor_key, critic_key = jax.random.split(key)
        actor = GaussianActor.init(actor_key, spec.obs_dim, spec.action_dim, self.hidden, self.activation)
        return self.init_soft(spec, critic_key, "vdn-a", self.learner(actor, self.actor_lr))

    def actor(self, state: ActorState) -> GaussianActor:
        """Return the actor network as it stands."""
        return state.actor.fixed

    def policy(self, state: ActorState) -> GaussianActor:
        """Return the actor network averaged over its last steps."""
        return state.actor.averaged

    def update(self, state: ActorState, batch: Transition, key: Key[Array, ""]) -> tuple[ActorState, Metrics]:
        """Step the critics; then, when it is due, the actor towards the projection, and the temperature."""
        state, critic_metrics = self.step_critic(state, batch, key)

        def improve():
            projected, told = self.project(state, batch.obs)

            def loss(actor: GaussianActor):
                policy, seen = actor.on_batch(batch.obs)
                distance = projection_loss(policy, projected, self.spread)
                return distance.mean + distance.spread, ((policy, distance), seen)

            actor, (policy, distance), actor_told = self.step_actor(
                state.actor, self.actor_lr, loss, None, number(self.policy_delay)
            )
            temperature, temperature_told = self.step_temperature(state, policy.entropy(), batch.action.shape[-1])
            return Improved(actor, temperature), told | distance.metrics() | actor_told | temperature_told

        improved, policy_metrics = self.when_due(state, improve)
        return improved, policy_metrics | critic_metrics
