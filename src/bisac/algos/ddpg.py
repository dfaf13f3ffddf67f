"""Deterministic policy gradients: DDPG, and TD3, which mends what makes it overestimate."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from bisac.algos.base import OffPolicy, require
from bisac.algos.td import follow, td_step
from bisac.learner import Learner
from bisac.nets.actors import DeterministicActor, noisy
from bisac.nets.critics import Critic, Joint
from bisac.nets.mlp import Activation
from bisac.types import Metrics, Spec, Transition


class DeterministicState(eqx.Module):
    """All that is learned."""

    actor: Learner[DeterministicActor]
    target_actor: DeterministicActor
    critic: Learner[Critic]
    target_critic: Critic
    updates: Int[Array, ""]
    actor_loss: Float[Array, ""]
    """Of the last step of the actor, for not every update takes one."""


@dataclass(frozen=True)
class Deterministic(OffPolicy[DeterministicState]):
    """Settings that DDPG and TD3 share."""

    tau: float = 0.005
    """Fraction by which the target networks move towards the online ones."""
    actor_lr: float = 1e-3
    """Learning rate of the actor."""
    critic_lr: float = 1e-3
    """Learning rate of the critics."""
    exploration_noise: float = 0.1
    """Standard deviation of the noise on actions, which range over [-1, 1]."""
    hidden: tuple[int, ...] = (256, 256)
    """Hidden widths of the actor and the critics."""
    activation: Activation = "relu"
    """Activation of every network."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "in (0, 1]", lambda v: 0.0 < v <= 1.0, "tau")
        require(self, "positive", lambda v: v > 0, "actor_lr", "critic_lr")
        require(self, "0 or positive", lambda v: v >= 0, "exploration_noise")
        require(self, "one or more positive widths", lambda v: v > 0, "hidden")

    def actor(self, state: DeterministicState) -> DeterministicActor:
        """The actor network."""
        return state.actor.model

    def init_state(self, spec: Spec, key: Key[Array, ""], critics: int) -> DeterministicState:
        """Fresh networks."""
        actor_key, critic_key = jax.random.split(key)
        sizes = (spec.obs_dim, spec.action_dim, self.hidden, self.activation)
        actor = DeterministicActor.init(actor_key, *sizes, self.exploration_noise)
        critic = Joint.init(critic_key, *sizes, critics)
        return DeterministicState(
            Learner.init(actor, optax.adam(self.actor_lr)),
            jax.tree.map(jnp.copy, actor),  # not the same buffers: the state is donated to the compiled step
            Learner.init(critic, optax.adam(self.critic_lr)),
            jax.tree.map(jnp.copy, critic),
            jnp.zeros((), jnp.int32),
            jnp.zeros(()),
        )

    def step(
        self, state: DeterministicState, batch: Transition, key: Key[Array, ""], delay: int, noise: float, limit: float
    ) -> tuple[DeterministicState, Metrics]:
        """Critics towards a target smoothed by noise; at every `delay`-th update also the actor and the targets."""
        next_action = noisy(state.target_actor(batch.next_obs), key, noise, limit)
        next_value = state.target_critic(batch.next_obs, next_action).min(axis=0)
        critic, target_critic, metrics = td_step(
            state.critic, state.target_critic, batch, next_value, self.gamma, self.critic_lr, self.tau
        )

        def loss(actor: DeterministicActor):
            return -critic.model(batch.obs, actor(batch.obs))[0].mean(), None  # the first twin's, as in TD3

        def with_actor():
            actor, actor_loss, _ = state.actor.step(optax.adam(self.actor_lr), loss)
            return actor, follow(actor.model, state.target_actor, self.tau), target_critic, actor_loss

        def without():
            return state.actor, state.target_actor, state.target_critic, state.actor_loss

        updates = state.updates + 1
        actor, target_actor, target_critic, actor_loss = jax.lax.cond(updates % delay == 0, with_actor, without)
        learned = DeterministicState(actor, target_actor, critic, target_critic, updates, actor_loss)
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

    policy_delay: int = 2
    """Critic updates for each of the actor and the targets."""
    target_noise: float = 0.2
    """Standard deviation of the noise on the target's action."""
    target_noise_limit: float = 0.5
    """Where that noise is cut off."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "at least 1", lambda v: v >= 1, "policy_delay")
        require(self, "0 or positive", lambda v: v >= 0, "target_noise", "target_noise_limit")

    def init(self, spec: Spec, key: Key[Array, ""]) -> DeterministicState:
        """Fresh networks, two critics."""
        return self.init_state(spec, key, critics=2)

    def update(
        self, state: DeterministicState, batch: Transition, key: Key[Array, ""]
    ) -> tuple[DeterministicState, Metrics]:
        """Critics, and at every `policy_delay`-th update the actor and the targets."""
        return self.step(state, batch, key, self.policy_delay, self.target_noise, self.target_noise_limit)
