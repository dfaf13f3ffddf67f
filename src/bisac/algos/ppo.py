"""Learning from fresh rollouts: PPO, and A2C, which is its plainest case."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Key

from bisac.algos.base import OnPolicy, Rollout
from bisac.algos.learner import Learner
from bisac.nets.actors import UnsquashedActor
from bisac.nets.mlp import MLP, Activation
from bisac.ops.losses import clipped_value_loss, policy_gradient_loss
from bisac.ops.returns import generalised_advantages
from bisac.types import Metrics, Spec
from bisac.validate import require

Optimiser = Literal["adam", "rmsprop"]


class ActorCritic(eqx.Module):
    """The policy and the value of states, trained as one."""

    actor: UnsquashedActor
    critic: MLP

    def value(self, obs: Float[Array, "batch obs"]) -> Float[Array, "batch"]:
        """V(s)."""
        return jax.vmap(self.critic)(obs)[:, 0]


class Sample(eqx.Module):
    """What a step of a rollout teaches; leaves have a leading batch axis."""

    obs: Float[Array, "batch obs"]
    action: Float[Array, "batch act"]
    log_prob: Float[Array, "batch"]
    """Of the action, when it was taken."""
    value: Float[Array, "batch"]
    """Of the observation, then."""
    advantage: Float[Array, "batch"]
    target: Float[Array, "batch"]
    """What the value should be."""


State = Learner[ActorCritic]


@dataclass(frozen=True)
class PolicyGradient(OnPolicy[State]):
    """Settings that PPO and A2C share, and the step they take."""

    learning_rate: float = 3e-4
    """Learning rate of both networks."""
    anneal: bool = True
    """Let the learning rate fall to zero over the run."""
    gae_lambda: float = 0.95
    """lambda of generalised advantage estimation: 0 trusts the value function, 1 the returns."""
    entropy_weight: float = 0.0
    """Weight of the entropy bonus."""
    value_weight: float = 0.5
    """Weight of the value function's loss."""
    max_gradient: float = 0.5
    """Norm at which gradients are cut off."""
    normalise_advantages: bool = True
    """Shift and scale advantages to mean 0 and standard deviation 1 in each minibatch."""
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
        require(self, "one or more positive widths", lambda v: v > 0, "hidden")

    def init(self, spec: Spec, key: Key[Array, ""]) -> State:
        """Fresh networks."""
        actor_key, critic_key = jax.random.split(key)
        sizes = (spec.obs_dim, spec.action_dim, self.hidden, self.activation)
        actor = UnsquashedActor.init(actor_key, *sizes, self.initial_log_std)
        critic = MLP.orthogonal(critic_key, (spec.obs_dim, *self.hidden, 1), self.activation, last=1.0)
        return Learner.init(ActorCritic(actor, critic), self.optimiser_chain())

    def actor(self, state: State) -> UnsquashedActor:
        """The actor network."""
        return state.model.actor

    def policy(self, state: State) -> UnsquashedActor:
        """The same network."""
        return self.actor(state)

    def explore(self, state: State, obs: Float[Array, "env obs"], key: Key[Array, ""]) -> Float[Array, "env act"]:
        """Actions as drawn."""
        return state.model.actor(obs).sample(key)

    @abstractmethod
    def optimiser_chain(self) -> optax.GradientTransformation:
        """Gradients cut off, then the optimiser."""

    def samples(self, state: State, rollout: Rollout) -> Sample:
        """The steps of a rollout, with what this state's networks say of them, in one batch."""
        flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), rollout)
        value, next_value = (state.model.value(obs).reshape(rollout.reward.shape) for obs in (flat.obs, flat.next_obs))
        advantage = generalised_advantages(
            rollout.reward, rollout.discount, rollout.ended, value, next_value, self.gamma, self.gae_lambda
        )
        log_prob = state.model.actor(flat.obs).log_prob(flat.action)
        return Sample(
            flat.obs, flat.action, log_prob, value.reshape(-1), advantage.reshape(-1), (advantage + value).reshape(-1)
        )

    def step(
        self, state: State, batch: Sample, remaining: Float[Array, ""], clip: float, value_clip: float
    ) -> tuple[State, Metrics]:
        """One gradient step on a minibatch."""
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


@dataclass(frozen=True)
class PPO(PolicyGradient):
    """Proximal Policy Optimisation: several epochs on each rollout, the policy kept near the one that made it."""

    epochs: int = 10
    """Passes over each rollout."""
    minibatches: int = 32
    """Parts into which a pass divides the rollout."""
    clip: float = 0.2
    """How far the probability ratio may move from 1 with profit."""
    value_clip: float | None = None
    """How far a value may move from what it was with profit; None for no limit."""
    optimiser: Optimiser = "adam"
    """The optimiser."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "at least 1", lambda v: v >= 1, "epochs", "minibatches")
        require(self, "positive", lambda v: v is None or v > 0, "clip", "value_clip")

    def check_num_envs(self, num_envs: int) -> None:
        """A rollout is the same number of steps of each; its minibatches must hold something to learn from."""
        steps = self.length(num_envs) * num_envs
        least = 2 if self.normalise_advantages else 1  # the only one of its minibatch would have no advantage
        if steps // self.minibatches < least:
            kind = f"at most {steps // least}: rollouts have {steps} steps, and minibatches need {least}"
            require(self, kind, lambda _: False, "minibatches")

    def optimiser_chain(self) -> optax.GradientTransformation:
        """Gradients cut off, then the optimiser."""
        return _optimiser(self.optimiser, self.learning_rate, self.max_gradient)

    def update(
        self, state: State, rollout: Rollout, key: Key[Array, ""], remaining: Float[Array, ""]
    ) -> tuple[State, Metrics]:
        """Epochs of minibatches, each in a new order."""
        samples = self.samples(state, rollout)
        size = samples.value.shape[0] // self.minibatches
        value_clip = jnp.inf if self.value_clip is None else self.value_clip

        def epoch(state: State, key: Key[Array, ""]) -> tuple[State, dict[str, Array]]:
            order = jax.random.permutation(key, samples.value.shape[0])[: self.minibatches * size]

            def minibatch(state: State, rows: Array) -> tuple[State, Metrics]:
                return self.step(
                    state, jax.tree.map(lambda leaf: leaf[rows], samples), remaining, self.clip, value_clip
                )

            return jax.lax.scan(minibatch, state, order.reshape(self.minibatches, size))

        state, metrics = jax.lax.scan(epoch, state, jax.random.split(key, self.epochs))
        return state, jax.tree.map(jnp.mean, metrics) | {"explained_variance": _explained(samples)}


@dataclass(frozen=True)
class A2C(PolicyGradient):
    """Advantage Actor-Critic: one step on each short rollout, as a whole and without clipping, by RMSprop."""

    rollout: int = 40
    """Environment steps between updates, summed over the environments."""
    learning_rate: float = 7e-4
    """Learning rate of both networks."""
    normalise_advantages: bool = False
    """Shift and scale advantages to mean 0 and standard deviation 1 in each rollout."""

    def check_num_envs(self, num_envs: int) -> None:
        """A rollout of one step has no advantage left once that is normalised."""
        if self.normalise_advantages and self.length(num_envs) * num_envs < 2:
            require(self, "at least 2 where advantages are normalised", lambda _: False, "rollout")

    def optimiser_chain(self) -> optax.GradientTransformation:
        """Gradients cut off, then RMSprop."""
        return _optimiser("rmsprop", self.learning_rate, self.max_gradient)

    def update(
        self,
        state: State,
        rollout: Rollout,
        key: Key[Array, ""],  # noqa: ARG002  nothing is drawn
        remaining: Float[Array, ""],
    ) -> tuple[State, Metrics]:
        """One step on the whole rollout."""
        samples = self.samples(state, rollout)
        state, metrics = self.step(state, samples, remaining, clip=jnp.inf, value_clip=jnp.inf)
        return state, metrics | {"explained_variance": _explained(samples)}


def _optimiser(kind: Optimiser, learning_rate: float, max_gradient: float) -> optax.GradientTransformation:
    # The epsilons of the implementations that published results rest on.
    rule = (
        optax.adam(learning_rate, eps=1e-5)
        if kind == "adam"
        else optax.rmsprop(learning_rate, 0.99, 1e-5, eps_in_sqrt=False)
    )
    return optax.chain(optax.clip_by_global_norm(max_gradient), rule)


def _explained(samples: Sample) -> Float[Array, ""]:
    """How much of the targets' variance the values explained before the update."""
    return 1.0 - (samples.target - samples.value).var() / (samples.target.var() + 1e-8)
