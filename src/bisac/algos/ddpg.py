"""Deterministic policy gradients: DDPG, and TD3, which mends what makes it overestimate."""

from dataclasses import dataclass
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from bisac.algos.base import Auto, number
from bisac.algos.learner import Learner
from bisac.algos.td import TemporalDifference, in_rewards, spread_of
from bisac.nets.actors import DeterministicActor, noisy
from bisac.nets.critics import Critic, Joint
from bisac.types import Metrics, Spec, Transition
from bisac.validate import require


class DeterministicState(eqx.Module):
    """All that is learned."""

    actor: Learner[DeterministicActor]
    target_actor: DeterministicActor | None
    critic: Learner[Critic]
    target_critic: Critic | None
    """None, as the target of the actor, where networks are normalised."""
    updates: Int[Array, ""]
    actor_loss: Float[Array, ""]
    """Of the last step of the actor, for not every update takes one."""
    reward_unit: Float[Array, ""] | None = None
    """By what rewards are divided, so that values are in such units; None where they are as they come."""


@dataclass(frozen=True)
class Deterministic(TemporalDifference[DeterministicState]):
    """Settings that DDPG and TD3 share."""

    actor_lr: float = 1e-3
    """Learning rate of the actor."""
    exploration_noise: float = 0.1
    """Standard deviation of the noise on actions, which range over [-1, 1]."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "positive", lambda v: v > 0, "actor_lr")
        require(self, "0 or positive", lambda v: v >= 0, "exploration_noise")

    def actor(self, state: DeterministicState) -> DeterministicActor:
        """The actor network."""
        return state.actor.fixed

    def policy(self, state: DeterministicState) -> DeterministicActor:
        """The actor network, averaged."""
        return state.actor.averaged

    def init_state(self, spec: Spec, key: Key[Array, ""], critics: int) -> DeterministicState:
        """Fresh networks."""
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
        """With rewards in units of their spread, where networks are normalised."""
        if self.critic_norm == "none":
            return state
        return eqx.tree_at(lambda s: s.reward_unit, state, spread_of(warm_up.reward))

    def step(
        self, state: DeterministicState, batch: Transition, key: Key[Array, ""], delay: int, noise: float, limit: float
    ) -> tuple[DeterministicState, Metrics]:
        """Critics towards a target smoothed by noise; at every `delay`-th update also the actor and the targets."""
        next_actor = state.actor.fixed if state.target_actor is None else state.target_actor
        next_action = noisy(next_actor(batch.next_obs), key, noise, limit)
        critic, metrics = self.step_values(
            state.critic, state.target_critic, state.reward_unit, batch, next_action, lambda next_q: next_q.min(axis=0)
        )

        def loss(actor: DeterministicActor):
            action, seen = actor.on_batch(batch.obs)
            return -critic.fixed(batch.obs, action)[0].mean(), seen  # the first twin's, as in TD3

        def with_actor():
            actor, actor_loss, seen = state.actor.step(self.adam(self.actor_lr), loss)
            targets = self.follow(actor.model, state.target_actor), self.follow(critic.model, state.target_critic)
            return self.stepped(actor, seen), *targets, in_rewards(actor_loss, state.reward_unit)

        def without():
            return state.actor, state.target_actor, state.target_critic, state.actor_loss

        updates = state.updates + 1
        actor, target_actor, target_critic, actor_loss = jax.lax.cond(updates % delay == 0, with_actor, without)
        learned = DeterministicState(actor, target_actor, critic, target_critic, updates, actor_loss, state.reward_unit)
        return learned, {"actor_loss": actor_loss} | metrics


@dataclass(frozen=True)
class DDPG(Deterministic):
    """Deep Deterministic Policy Gradient: the actor climbs the critic; exploration by added noise."""

    def init(self, spec: Spec, key: Key[Array, ""]) -> DeterministicState:
        """Fresh networks, one critic."""
        return self.init_state(spec, key, critics=1)

    def update(
        self, state: DeterministicState, batch: Transition, key: Key[Array, ""]
    ) -> tuple[DeterministicState, Metrics]:
        """Critic, actor, targets."""
        return self.step(state, batch, key, delay=1, noise=0.0, limit=0.0)


@dataclass(frozen=True)
class TD3(Deterministic):
    """Twin Delayed DDPG: the smaller of two critics, a delayed actor, a smoothed target."""

    policy_delay: int | Auto = "auto"
    """Critic updates for each of the actor and the targets; auto is 2, with normalised critics 3."""
    target_noise: float = 0.2
    """Standard deviation of the noise on the target's action."""
    target_noise_limit: float = 0.5
    """Where that noise is cut off."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "at least 1", lambda v: v == "auto" or v >= 1, "policy_delay")
        require(self, "0 or positive", lambda v: v >= 0, "target_noise", "target_noise_limit")

    def automatic(self) -> dict[str, Any]:
        """What auto stands for."""
        return super().automatic() | {"policy_delay": 3 if self.critic_norm == "batch" else 2}

    def init(self, spec: Spec, key: Key[Array, ""]) -> DeterministicState:
        """Fresh networks, two critics."""
        return self.init_state(spec, key, critics=2)

    def update(
        self, state: DeterministicState, batch: Transition, key: Key[Array, ""]
    ) -> tuple[DeterministicState, Metrics]:
        """Critics, and at every `policy_delay`-th update the actor and the targets."""
        return self.step(state, batch, key, number(self.policy_delay), self.target_noise, self.target_noise_limit)
