"""The temporal-difference step that every off-policy algorithm takes."""

from typing import TypeVar

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from bisac.learner import Learner
from bisac.nets.critics import Critic
from bisac.ops.losses import squared_error
from bisac.ops.returns import polyak, td_target
from bisac.types import Metrics, Transition

Net = TypeVar("Net")


def td_step(
    critic: Learner[Critic],
    target_critic: Critic,
    batch: Transition,
    next_value: Float[Array, "batch"],
    gamma: float,
    learning_rate: float,
    tau: float,
) -> tuple[Learner[Critic], Critic, Metrics]:
    """The online critics after one step towards r + gamma V(s'), and the targets that follow them."""
    target = td_target(batch.reward, batch.discount, next_value, gamma)

    def loss(critic: Critic):
        estimates = critic.estimates(batch.obs, batch.action)
        return sum((squared_error(q, target) for q in estimates), jnp.zeros(())), estimates[-1]

    critic, value, q = critic.step(optax.adam(learning_rate), loss)
    return critic, follow(critic.model, target_critic, tau), {"critic_loss": value, "q": q.mean()}


def follow(online: Net, target: Net, tau: float) -> Net:
    """A target network moved a fraction tau towards the online one."""
    return jax.tree.map(lambda o, t: polyak(o, t, tau), online, target)
