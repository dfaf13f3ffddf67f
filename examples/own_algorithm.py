"""An algorithm of one's own: SAC whose actor also pays for the effort of its actions.

Run this file, or let the command line know it: BISAC_IMPORT=own_algorithm bisac train Pendulum-v1 --algo gentle-sac
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

import bisac
from bisac.algos import SAC
from bisac.algos.soft import Improved
from bisac.ops.losses import reverse_kl_loss
from bisac.validate import require


@dataclass(frozen=True)
class GentleSAC(SAC):
    """SAC whose actor also pays for the effort of its actions."""

    effort: float = 0.1
    """Price of an action's mean square, in the unit of the critics' values."""

    def __post_init__(self):
        super().__post_init__()
        require(self, "0 or positive", lambda v: v >= 0, "effort")

    def update(self, state, batch, key):
        """Step the critics; then, when it is due, the actor and the temperature."""
        next_key, actor_key = jax.random.split(key)
        state, critic_metrics = self.step_critic(state, batch, next_key)

        def loss(actor):
            policy, seen = actor.on_batch(batch.obs)
            action, log_prob = policy.sample(actor_key)
            effort = jnp.square(action).mean()
            q = state.critic.fixed(batch.obs, action)
            return reverse_kl_loss(log_prob, q, state.alpha) + self.effort * effort, ((log_prob, effort), seen)

        def improve():
            stepped = self.step_actor(state.actor, self.actor_lr, loss, state.reward_unit)
            actor, (log_prob, effort), told = stepped
            temperature, more = self.step_temperature(state, -log_prob, batch.action.shape[-1])
            return Improved(actor, temperature), told | more | {"effort": effort}

        state, policy_metrics = self.when_due(state, improve)
        return state, policy_metrics | critic_metrics


bisac.register("gentle-sac", GentleSAC)

if __name__ == "__main__":
    bisac.train("Pendulum-v1", algo="gentle-sac", steps=6_000, effort=0.5)
