"""What PPO and A2C share: an actor and a value function that learn, as one model, from fresh rollouts.

How often a rollout is gone through, and in which parts, is not known here.
"""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from bisac.algos.base import OnPolicy, Rollout
from bisac.algos.learner import Learner
from bisac.algos.search import among, between
from bisac.nets.actors import UnsquashedActor
from bisac.nets.mlp import MLP, WIDEST, Activation
from bisac.ops.losses import clipped_value_loss, policy_gradient_loss
from bisac.ops.returns import generalised_advantages
from bisac.types import Metrics, Spec
from bisac.validate import require

Optimiser = Literal["adam", "rmsprop"]
"""The rule by which gradients become steps."""


class ActorCritic(eqx.Module):
    """The policy and the value of states, trained as one model."""

    actor: UnsquashedActor
    """The policy's network."""
    critic: MLP
    """The network of the value function V(s)."""

    def value(self, obs: Float[Array, "batch obs"]) -> Float[Array, "batch"]:
        """Return the value V(s) of each observation."""
        return jax.vmap(self.critic)(obs)[:, 0]


class RatedSteps(eqx.Module):
    """Steps of a rollout with what the agent that took them said of them; leaves have a leading batch axis."""

    obs: Float[Array, "batch obs"]
    """The observations that were acted upon."""
    action: Float[Array, "batch act"]
    """The actions as drawn."""
    log_prob: Float[Array, "batch"]
    """The log-probability of each action when it was taken."""
    value: Float[Array, "batch"]
    """The value of each observation then."""
    advantage: Float[Array, "batch"]
    """How much better each action turned out than was expected."""
    target: Float[Array, "batch"]
    """What the value of each observation should be."""

    @property
    def explained_variance(self) -> Float[Array, ""]:
        """The share of the targets' variance that the values explained."""
        return 1.0 - (self.target - self.value).var() / (self.target.var() + 1e-8)


State = Learner[ActorCritic]
"""The agent of PPO and of A2C."""


@dataclass(frozen=True)
class PolicyGradient(OnPolicy[State]):
    """Hyperparameters that PPO and A2C share, and the gradient step that both take."""

    learning_rate: float = field(default=3e-4, metadata=between(3e-5, 3e-3, log=True))
    """Learning rate of both networks."""
    anneal: bool = True
    """Whether the learning rate falls to zero over the run."""
    gae_lambda: float = field(default=0.95, metadata=among(0.8, 0.9, 0.95, 0.98, 1.0))
    """lambda of generalised advantage estimation: 0 trusts the value function, 1 the returns."""
    entropy_weight: float = field(default=0.0, metadata=between(0.0, 0.02))
    """Weight of the entropy bonus."""
    value_weight: float = 0.5
    """Weight of the value function's loss."""
    max_gradient: float = 0.5
    """Norm at which gradients are cut off."""
    normalise_advantages: bool = True
    """Whether to shift and scale advantages to mean 0 and standard deviation 1 in each minibatch."""
    initial_log_std: float = 0.0
    """Where the logarithm of the policy's standard deviation starts, for actions that range over [-1, 1]."""
    hidden: tuple[int, ...] = (64, 64)
    """Hidden widths of the actor and of the value function."""
    activation: Activation = "tanh"
    """Activation of both networks."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "positive", lambda v: v > 0, "learning_rate", "max_gradient")
        require(self, "in [0, 1]", lambda v: 0.0 <= v <= 1.0, "gae_lambda")
        require(self, "0 or positive", lambda v: v >= 0, "entropy_weight", "value_weight")
        require(self, f"one or more widths from 1 to {WIDEST}", lambda v: 1 <= v <= WIDEST, "hidden")

    def init(self, spec: Spec, key: Key[Array, ""]) -> State:
        """Return a fresh agent: an actor, and a value function with no bias and orthogonal weights."""
        actor_key, critic_key = jax.random.split(key)
        sizes = (spec.obs_dim, spec.action_dim, self.hidden, self.activation)
        actor = UnsquashedActor.init(actor_key, *sizes, self.initial_log_std)
        critic = MLP.orthogonal(critic_key, (spec.obs_dim, *self.hidden, 1), self.activation, last=1.0)
        return Learner.init(ActorCritic(actor, critic), self.optimiser_chain())

    def actor(self, state: State) -> UnsquashedActor:
        """Return the actor network."""
        return state.model.actor

    def policy(self, state: State) -> UnsquashedActor:
        """Return the actor network: the same that explores."""
        return self.actor(state)

    def explore(self, state: State, obs: Float[Array, "env obs"], key: Key[Array, ""]) -> Float[Array, "env act"]:
        """Return actions as drawn, not yet cut to [-1, 1]."""
        return state.model.actor(obs).sample(key)

    @abstractmethod
    def optimiser_chain(self) -> optax.GradientTransformation:
        """Return the optimiser, after a cut of gradients at their largest norm."""

    def rated(self, state: State, rollout: Rollout) -> RatedSteps:
        """Return the steps of a rollout in one batch, with what the agent's networks say of them."""
        flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), rollout)
        value, next_value = (state.model.value(obs).reshape(rollout.reward.shape) for obs in (flat.obs, flat.next_obs))
        advantage = generalised_advantages(
            rollout.reward, rollout.discount, rollout.ended, value, next_value, self.gamma, self.gae_lambda
        )
        log_prob = state.model.actor(flat.obs).log_prob(flat.action)
        return RatedSteps(
            flat.obs, flat.action, log_prob, value.reshape(-1), advantage.reshape(-1), (advantage + value).reshape(-1)
        )

    def step(
        self, state: State, batch: RatedSteps, remaining: Float[Array, ""], clip: float, value_clip: float
    ) -> tuple[State, Metrics]:
        """Return the agent after one gradient step on a minibatch, and the step's metrics.

        `remaining` is the share of the run that is left, `clip` how far the probability ratio may move from 1 with
        profit, and `value_clip` how far a value may move from what it was.
        """
        advantage = batch.advantage
        if self.normalise_advantages:
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)

        def loss(model: ActorCritic):
            policy = model.actor(batch.obs)
            log_prob, entropy = policy.log_prob(batch.action), policy.entropy().mean()
            actor_loss = policy_gradient_loss(log_prob, batch.log_prob, advantage, clip)
            value_loss = clipped_value_loss(model.value(batch.obs), batch.value, batch.target, value_clip)
            log_ratio = log_prob - batch.log_prob
            metrics = {
                "actor_loss": actor_loss,
                "value_loss": value_loss,
                "entropy": entropy,
                "approximate_kl": (jnp.exp(log_ratio) - 1.0 - log_ratio).mean(),
                "clip_fraction": (jnp.abs(jnp.exp(log_ratio) - 1.0) > clip).mean(),
            }
            return actor_loss + self.value_weight * value_loss - self.entropy_weight * entropy, metrics

        scale = remaining if self.anneal else jnp.ones(())
        state, _, metrics = state.step(self.optimiser_chain(), loss, scale)
        return state, metrics


def clipped(kind: Optimiser, learning_rate: float, max_gradient: float) -> optax.GradientTransformation:
    """Return an optimiser whose gradients are first scaled down to that norm where theirs is larger."""
    # The epsilons of the implementations that published results rest on.
    rule = (
        optax.adam(learning_rate, eps=1e-5)
        if kind == "adam"
        else optax.rmsprop(learning_rate, 0.99, 1e-5, eps_in_sqrt=False)
    )
    return optax.chain(optax.clip_by_global_norm(max_gradient), rule)
