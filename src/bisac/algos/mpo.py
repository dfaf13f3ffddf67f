"""Maximum a Posteriori Policy Optimisation: the policy is fitted to samples of its own, weighted by their worth."""

import math
from dataclasses import dataclass, field

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from bisac.algos.base import Auto
from bisac.algos.learner import Learner
from bisac.algos.schedule import KIND, LearningRate, adam, is_rate
from bisac.algos.search import between
from bisac.algos.td import TemporalDifference, auto, copied
from bisac.nets.actors import GaussianActor
from bisac.nets.critics import Critic, Joint
from bisac.ops.improvement import (
    DecoupledKL,
    decoupled_kl,
    sample_weights,
    temperature_dual,
    weighted_likelihood_loss,
    weights_kl,
)
from bisac.types import Metrics, Spec, Transition
from bisac.validate import require

LEAST = -18.0
"""Where the logarithm of a dual variable stops falling: from further down it would not come back."""

MOST = 100.0
"""Where the weight of a divergence stops rising: if Adam's own steps overshoot a bound, it would drown all else."""


class Duals(eqx.Module):
    """The logarithms of the dual variables, one for each bound on a divergence."""

    log_eta: Float[Array, ""]
    """Of the E-step's temperature eta."""
    log_alpha_mean: Float[Array, "act"]
    """Of the weights of KL in the mean, one an action dimension."""
    log_alpha_std: Float[Array, "act"]
    """Of the weights of KL in the standard deviation."""

    @staticmethod
    def init(action_dim: int) -> "Duals":
        """Return the variables where they start: near where they settle, and Adam brings them there soon."""
        return Duals(jnp.zeros(()), jnp.zeros(action_dim), jnp.full(action_dim, jnp.log(10.0)))

    @property
    def eta(self) -> Float[Array, ""]:
        """The temperature."""
        return jnp.exp(self.log_eta)

    def penalty(self, kl: DecoupledKL) -> Float[Array, ""]:
        """Return sum_i alpha_mean_i KL_mean_i + alpha_std_i KL_std_i."""
        return jnp.exp(self.log_alpha_mean) @ kl.mean + jnp.exp(self.log_alpha_std) @ kl.std

    def kept(self) -> "Duals":
        """Return the variables within reach: not below `LEAST`, and the weights not above `MOST`."""
        alphas = (jnp.clip(log_alpha, LEAST, math.log(MOST)) for log_alpha in (self.log_alpha_mean, self.log_alpha_std))
        return Duals(jnp.maximum(self.log_eta, LEAST), *alphas)

    def metrics(self) -> Metrics:
        """Return the variables by the names that they have in logs, those of all dimensions as their mean."""
        alphas = {"alpha_mean": self.log_alpha_mean, "alpha_std": self.log_alpha_std}
        return {"eta": self.eta} | {name: jnp.exp(value).mean() for name, value in alphas.items()}


class MPOState(eqx.Module):
    """MPO's agent: all that it learns."""

    actor: Learner[GaussianActor]
    """The learner of the actor network."""
    target_actor: GaussianActor
    """The old policy: samples come from it, and trust regions lie around it."""
    critic: Learner[Critic]
    """The learner of the critics."""
    target_critic: Critic
    """The critics' target networks."""
    duals: Learner[Duals]
    """The learner of the dual variables."""


@dataclass(frozen=True)
class MPO(TemporalDifference[MPOState]):
    """Maximum a Posteriori Policy Optimisation: EM, with trust regions around the old policy."""

    tau: float | Auto = field(
        default="auto", metadata=auto(classic=0.02, normalised=None) | between(2e-3, 1e-1, log=True)
    )
    """Fraction by which target networks, the old policy among them, move towards the online ones; auto is 0.02."""
    normalise_observations: bool = True
    """Whether to shift and scale observations by their running mean and standard deviation."""
    actor_lr: LearningRate = field(default=3e-4, metadata=between(3e-5, 3e-3, log=True))
    """Learning rate of the actor."""
    dual_lr: LearningRate = 1e-2
    """Learning rate of the logarithms of the dual variables."""
    initial_log_std: float = 0.0
    """Where the logarithm of the policy's standard deviation in x starts, about."""
    critics: int = 2
    """Critics, of which the smallest answer counts in the TD target; the E-step asks the first."""
    samples: int = 10
    """Actions of the old policy that the E-step weighs in each state."""
    next_samples: int = 2
    """Actions of the old policy over which the TD target averages."""
    epsilon: float = field(default=0.1, metadata=between(0.02, 1.0, log=True))
    """Bound on the KL divergence of the weighted samples from the old policy."""
    epsilon_mean: float = field(default=0.0025, metadata=between(5e-4, 5e-2, log=True))
    """Bound on the KL divergence by a change of the mean, of each action dimension."""
    epsilon_std: float = field(default=1e-4, metadata=between(1e-6, 1e-2, log=True))
    """Bound on the KL divergence by a change of the standard deviation, of each action dimension."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "none with MPO, whose old policy is a target network", lambda v: v == "none", "critic_norm")
        require(self, KIND, is_rate, "actor_lr", "dual_lr")
        require(self, "positive", lambda v: v > 0, "epsilon", "epsilon_mean", "epsilon_std")
        require(self, "at least 1", lambda v: v >= 1, "critics", "next_samples")
        require(self, "at least 2", lambda v: v >= 2, "samples")

    def init(self, spec: Spec, key: Key[Array, ""]) -> MPOState:
        """Return a fresh agent: an actor, critics, their targets, and the dual variables."""
        actor_key, critic_key = jax.random.split(key)
        sizes = (spec.obs_dim, spec.action_dim, self.hidden, self.activation)
        actor = self.learner(widened(GaussianActor.init(actor_key, *sizes), self.initial_log_std), self.actor_lr)
        critic = Learner.init(Joint.init(critic_key, *sizes, self.critics), self.adam(self.critic_lr))
        duals = Learner.init(Duals.init(spec.action_dim), adam(self.dual_lr))
        return MPOState(actor, copied(actor.model), critic, copied(critic.model), duals)

    def actor(self, state: MPOState) -> GaussianActor:
        """Return the actor network as it stands."""
        return state.actor.fixed

    def policy(self, state: MPOState) -> GaussianActor:
        """Return the actor network averaged over its last steps."""
        return state.actor.averaged

    def begin(self, state: MPOState, warm_up: Transition) -> MPOState:  # noqa: ARG002 (nothing is measured)
        """Return the agent as it is: it learns from rewards as they come."""
        return state

    def update(self, state: MPOState, batch: Transition, key: Key[Array, ""]) -> tuple[MPOState, Metrics]:
        """Step the critics; weigh the old policy's samples; step the actor towards them, and the dual variables."""
        next_key, key = jax.random.split(key)
        critic, critic_metrics = self.step_critic(state, batch, next_key)
        duals = state.duals.model

        old = state.target_actor(batch.obs)
        x = old.draws(key, self.samples)
        q = first_of(state.target_critic)(batch.obs, jnp.tanh(x))[0]
        weights = sample_weights(q, duals.eta)

        def loss(actor: GaussianActor):
            policy, seen = actor.on_batch(batch.obs)
            kl = decoupled_kl(policy, old)
            return weighted_likelihood_loss(policy, old, x, weights) + duals.penalty(kl), (kl, seen)

        actor, kl, actor_metrics = self.step_actor(state.actor, self.actor_lr, loss, None)
        improved = MPOState(
            actor,
            self.followed(actor.model, state.target_actor),
            critic,
            self.followed(critic.model, state.target_critic),
            self.step_duals(state.duals, q, kl),
        )
        told = {"kl_weights": weights_kl(weights), "kl_mean": kl.mean.mean(), "kl_std": kl.std.mean()}
        return improved, critic_metrics | actor_metrics | duals.metrics() | told | {"std": old.std.mean()}

    def step_critic(self, state: MPOState, batch: Transition, key: Key[Array, ""]) -> tuple[Learner[Critic], Metrics]:
        """Return the critics after a step towards the mean of min_j Q_j(s', a') over the old policy's next actions."""
        next_action = jnp.tanh(state.target_actor(batch.next_obs).draws(key, self.next_samples))

        def value(next_q: Float[Array, "twin sample batch"]) -> Float[Array, "batch"]:
            return next_q.min(axis=0).mean(axis=0)

        return self.step_values(state.critic, state.target_critic, None, batch, next_action, value)

    def step_duals(self, duals: Learner[Duals], q: Float[Array, "sample batch"], kl: DecoupledKL) -> Learner[Duals]:
        """Return the dual variables one step down the dual of each bound, kept within reach."""
        slack = DecoupledKL(self.epsilon_mean - kl.mean, self.epsilon_std - kl.std)

        def loss(variables: Duals):
            return temperature_dual(q, variables.eta, self.epsilon) + variables.penalty(slack), None

        stepped, _, _ = duals.step(adam(self.dual_lr), loss)
        return eqx.tree_at(lambda d: d.model, stepped, stepped.model.kept())


def widened(actor: GaussianActor, log_std: float) -> GaussianActor:
    """Return the actor with this added to its log standard deviations."""
    bias = actor.mlp.biases[-1]
    added = jnp.repeat(jnp.array([0.0, log_std]), bias.shape[-1] // 2)
    return eqx.tree_at(lambda a: a.mlp.biases, actor, (*actor.mlp.biases[:-1], bias + added))


def first_of(critic: Critic) -> Critic:
    """Return the first of the critics alone, which costs as much less to ask."""
    return jax.tree.map(lambda leaf: leaf[:1], critic)
