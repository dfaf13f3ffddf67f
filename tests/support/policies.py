"""Small policies of every algorithm, for tests of what is done with policies."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bisac.algos import REGISTRY, SAC, TD3, BidirectionalSAC
from bisac.algos.soft import Soft
from bisac.collect.scaling import Scaling
from bisac.nets.normalisation import Moments, Norm, norms_of
from bisac.policies.policy import Policy
from bisac.types import Spec

SPEC = Spec("Some-v0", 3, (-2.0, 0.0), (2.0, 10.0))
SMALL = dict(hidden=(8,), encoder=(8,), subnetwork=(8,), embedding=(4,))
POLICIES = {name: kind(**SMALL) if issubclass(kind, Soft) else kind(hidden=(8,)) for name, kind in REGISTRY.items()}
POLICIES |= {
    "sac-classic": SAC(critic_norm="none", **SMALL),
    "bisac-batch": BidirectionalSAC(**SMALL),
    "td3-batch": TD3(critic_norm="batch", hidden=(8,)),
}
POLICIES = {name: algo.settled() for name, algo in POLICIES.items()}


@partial(jax.jit, static_argnums=(0, 1))
def _actor(algo, spec):
    return algo.actor(algo.init(spec, jax.random.key(0)))


def fresh(algo, spec=SPEC):
    """An untrained policy that has seen observations with mean 2 and standard deviation 5."""
    actor = _actor(algo, spec)
    seen = Scaling.init(spec.obs_dim, 1, algo.normalise_observations, rewards=False)
    obs = jax.random.normal(jax.random.key(1), (50, 1, spec.obs_dim)) * 5.0 + 2.0
    return Policy(spec, algo, seen.observe(obs, jnp.zeros((50, 1)), jnp.zeros((50, 1), bool), 0.99).around(actor))


def used(policy):
    """The same policy with normalisations as training leaves them: scales, shifts and moments of every size."""

    random = np.random.default_rng(2)

    def one(norm):
        draws = random.normal(size=(4, *norm.scale.shape)).astype(np.float32)
        scale, shift, mean, var = map(jnp.asarray, (1.0 + 0.3 * draws[0], 0.3 * draws[1], draws[2], np.exp(draws[3])))
        return Norm(scale, shift, Moments(mean, var))

    if not norms_of(policy.actor):
        return policy
    return Policy(policy.spec, policy.algo, eqx.tree_at(norms_of, policy.actor, list(map(one, norms_of(policy.actor)))))
