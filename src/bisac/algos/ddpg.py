"""Deterministic policy gradients: DDPG, and TD3, which mends what makes it overestimate."""

from dataclasses import dataclass, field
from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bisac.algos.base import Auto, number
from bisac.algos.learner import Learner
from bisac.algos.schedule import KIND, LearningRate, is_rate
from bisac.algos.search import among, between
from bisac.algos.td import TemporalDifference, auto
from bisac.nets.actors import DeterministicActor, noisy
from bisac.nets.critics import Critic, Joint
from bisac.ops.rewards import spread_of
from bisac.types import Metrics, Spec, Transition
from bisac.validate import require


class DeterministicState(eqx.Module):
    """The agent of DDPG and of TD3: all that it learns."""

    actor: Learner[DeterministicActor]
    """The learner of the actor network."""
    target_actor: DeterministicActor | None
    """The actor's target network; None where networks are normalised."""
    critic: Learner[Critic]
    """The learner of the critics: one of DDPG, two of TD3."""
    target_critic: Critic | None
    """The critics' target networks; None where networks are normalised."""
    updates: Int[Array, ""]
    """Updates so far."""
    actor_loss: Float[Array, ""]
    """The loss at the last step of the actor, for not every update takes one."""
    reward_unit: Float[Array, ""] | None = None
    """By what rewards are divided, so that values are in such units; None where they are as they come."""


@dataclass(frozen=True)
class Deterministic(TemporalDifference[DeterministicState]):
    """Hyperparameters that DDPG and TD3 share, and the step that both take."""

    actor_lr: LearningRate = field(default=1e-3, metadata=between(1e-4, 3e-3, log=True))
    """Learning rate of the actor."""
    exploration_noise: float = field(default=0.1, metadata=between(0.02, 0.5, log=True))
    """Standard deviation of the noise on actions, which range over [-1, 1]."""

    def __post_init__(self):
        super().__post_init__()
        require(self, KIND, is_rate, "actor_lr")
        require(self, "0 or positive", lambda v: v >= 0, "exploration_noise")

    def actor(self, state: DeterministicState) -> DeterministicActor:
        """Return the actor network as it stands."""
        return state.actor.fixed

    def policy(self, state: DeterministicState) -> DeterministicActor:
        """Return the actor network averaged over its last steps."""
        return state.actor.averaged

    def init_state(self, spec: Spec, key: Key[Array, ""], critics: int) -> DeterministicState:
        """Return a fresh agent with that many critics."""
        actor_key, critic_key = jax.random.split(key)
        sizes = (spec.obs_dim, spec.action_dim, self.hidden, self.activation)
        actor = self.learner(DeterministicActor.init(actor_key, *sizes, self.exploration_noise), self.actor_lr)
        critic = self.network(Joint.init(critic_key, *sizes, critics))
        return DeterministicState(
            actor,
            self.target(actor.model),
            Learner.init(critic, self.adam(self.critic_lr)),
            self.target(critic),
            jnp.zeros((), jnp.int32),
            jnp.zeros(()),
            self.fresh_unit(),
        )

    @final
    def begin(self, state: DeterministicState, warm_up: Transition) -> DeterministicState:
        """Return the agent with rewards in units of the random ones' spread, where networks are normalised."""
        if self.critic_norm == "none":
            return state
        return eqx.tree_at(lambda s: s.reward_unit, state, spread_of(warm_up.reward))

    def step(
        self, state: DeterministicState, batch: Transition, key: Key[Array, ""], delay: int, noise: float, limit: float
    ) -> tuple[DeterministicState, Metrics]:
        """Step the critics towards a target smoothed by noise; at every `delay`-th update also actor and targets.

        `noise` is the standard deviation of the noise on the next action, and `limit` where that noise is cut off.
        """
        next_actor = state.actor.fixed if state.target_actor is None else state.target_actor
        next_action = noisy(next_actor(batch.next_obs), key, noise, limit)
        critic, metrics = self.step_values(
            state.critic, state.target_critic, state.reward_unit, batch, next_action, lambda next_q: next_q.min(axis=0)
        )

        def loss(actor: DeterministicActor):
            action, seen = actor.on_batch(batch.obs)
            return -critic.fixed(batch.obs, action)[0].mean(), (None, seen)  # the first twin's, as in TD3

        def improve():
            actor, _, told = self.step_actor(state.actor, self.actor_lr, loss, state.reward_unit, delay)
            targets = self.follow(actor.model, state.target_actor), self.follow(critic.model, state.target_critic)
            return actor, *targets, told["actor_loss"]

        def keep():
            return state.actor, state.target_actor, state.target_critic, state.actor_loss

        updates = state.updates + 1
        actor, target_actor, target_critic, actor_loss = jax.lax.cond(updates % delay == 0, improve, keep)
        learned = DeterministicState(actor, target_actor, critic, target_critic, updates, actor_loss, state.reward_unit)
        return learned, {"actor_loss": actor_loss} | metrics


@dataclass(frozen=True)
class DDPG(Deterministic):
    """Deep Deterministic Policy Gradient: the actor climbs the critic; exploration by added noise."""

    def init(self, spec: Spec, key: Key[Array, ""]) -> DeterministicState:
        """Return a fresh agent with one critic."""
        return self.init_state(spec, key, critics=1)

    def update(
        self, state: DeterministicState, batch: Transition, key: Key[Array, ""]
    ) -> tuple[DeterministicState, Metrics]:
        """Step the critic, the actor and their targets."""
        return self.step(state, batch, key, delay=1, noise=0.0, limit=0.0)


@dataclass(frozen=True)
class TD3(Deterministic):
    """Twin Delayed DDPG: the smaller of two critics, a delayed actor, a smoothed target."""

    policy_delay: int | Auto = field(default="auto", metadata=auto(classic=2, normalised=3) | among(1, 2, 3))
    """Critic updates for each of the actor and the targets; auto is 2, with normalised critics 3."""
    target_noise: float = field(default=0.2, metadata=between(0.0, 0.5))
    """Standard deviation of the noise on the target's action."""
    target_noise_limit: float = 0.5
    """Where that noise is cut off."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "at least 1", lambda v: v == "auto" or v >= 1, "policy_delay")
        require(self, "0 or positive", lambda v: v >= 0, "target_noise", "target_noise_limit")

    def init(self, spec: Spec, key: Key[Array, ""]) -> DeterministicState:
        """Return a fresh agent with two critics."""
        return self.init_state(spec, key, critics=2)

    def update(
        self, state: DeterministicState, batch: Transition, key: Key[Array, ""]
    ) -> tuple[DeterministicState, Metrics]:
        """Step the critics, and at every `policy_delay`-th update the actor and the targets."""
        return self.step(state, batch, key, number(self.policy_delay), self.target_noise, self.target_noise_limit)
