"""Batch normalisation of the inputs of a network's layers, as pure functions of parameters and moments.

A network that is being trained is normalised by the moments of the batch it is given. Everything else (acting,
evaluation, next actions, projections) uses running moments, which are explicit state beside the network: `fixed` puts
them into it. Nothing here knows which of the two it is being used for.
"""

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

EPSILON = 1e-3
"""Added to variances, so that an input that hardly varies is not blown up."""

MOMENTUM = 0.99
"""Share of the running moments that each batch leaves as it was."""

Model = TypeVar("Model")


class Moments(eqx.Module):
    """The mean and the variance of each input of one layer."""

    mean: Float[Array, "*stack in"]
    """The mean of each input."""
    var: Float[Array, "*stack in"]
    """The variance of each input."""

    @staticmethod
    def of(x: Float[Array, "batch in"]) -> "Moments":
        """Return the moments of a batch that lies near zero: its variance is the mean square less the squared mean."""
        mean = x.mean(axis=0)
        return Moments(mean, jnp.maximum(jnp.square(x).mean(axis=0) - jnp.square(mean), 0.0))


class Norm(eqx.Module):
    """What normalises the input of one layer: learned scale and shift, around moments that are given."""

    scale: Float[Array, "*stack in"]
    """By what each normalised input is multiplied."""
    shift: Float[Array, "*stack in"]
    """What is then added to it."""
    moments: Moments | None = None
    """The moments that a network is fixed at; None in one that is being trained."""

    @staticmethod
    def init(*shape: int) -> "Norm":
        """Return the plain normalisation, to mean 0 and variance 1, of inputs in an array of this shape."""
        return Norm(jnp.ones(shape), jnp.zeros(shape))

    def __call__(self, x: Float[Array, "*batch in"], moments: Moments) -> Float[Array, "*batch in"]:
        """Return y = scale (x - mean) / sqrt(var + epsilon) + shift."""
        gain = self.scale * jax.lax.rsqrt(moments.var + EPSILON)
        shape = (1,) * (x.ndim - 1) + gain.shape
        return (x - moments.mean.reshape(shape)) * gain.reshape(shape) + self.shift.reshape(shape)

    def folded(
        self, weight: Float[Array, "in out"], bias: Float[Array, "out"], moments: Moments
    ) -> tuple[Float[Array, "in out"], Float[Array, "out"]]:
        """Return weight and bias of the layer that normalises its input itself: `self(x) @ weight + bias`, rearranged.

        Nothing of the batch's size is left to compute but the product, nor in its gradient: this makes a normalised
        update nearly as cheap as a classic one.
        """
        gain = self.scale * jax.lax.rsqrt(moments.var + EPSILON)
        return gain[:, None] * weight, bias + (self.shift - moments.mean * gain) @ weight

    def inputs(self, start: int | None, stop: int | None) -> "Norm":
        """Return the normalisation of inputs `start` to `stop` alone."""
        return jax.tree.map(lambda leaf: leaf[..., start:stop], self)


def norms_of(model: object) -> list[Norm]:
    """Return every normalisation in a model, in the order of its tree."""
    return [leaf for leaf in jax.tree.leaves(model, is_leaf=_is_norm) if _is_norm(leaf)]


def fresh_moments(model: object) -> tuple[Moments, ...]:
    """Return the running moments of a model that has seen nothing: mean 0 and variance 1 for each normalisation."""
    return tuple(Moments(jnp.zeros_like(norm.scale), jnp.ones_like(norm.scale)) for norm in norms_of(model))


def fixed(model: Model, moments: tuple[Moments, ...]) -> Model:
    """Return the model with the moments of its normalisations, in the order of its tree, fixed at these.

    A classic model, which has none, is returned as it is.
    """
    if not moments:
        return model
    norms = [Norm(norm.scale, norm.shift, m) for norm, m in zip(norms_of(model), moments, strict=True)]
    return eqx.tree_at(norms_of, model, norms)


def moved(running: tuple[Moments, ...], seen: tuple[Moments, ...]) -> tuple[Moments, ...]:
    """Return the running moments after one more batch, whose own moments are `seen`."""
    return jax.tree.map(lambda old, new: MOMENTUM * old + (1.0 - MOMENTUM) * new, running, seen)


def dead_units(seen: tuple[Moments, ...]) -> Float[Array, ""]:
    """Return the share of the hidden units that answered every example of a batch alike, by the moments seen in it."""
    return jnp.concatenate([(m.var == 0.0).ravel() for m in seen[1:]]).mean()


def moments_gap(running: tuple[Moments, ...], seen: tuple[Moments, ...]) -> Float[Array, ""]:
    """Return how far a batch's means lie from the running ones, in running standard deviations, on average."""
    gaps = [
        jnp.abs(new.mean - old.mean) * jax.lax.rsqrt(old.var + EPSILON) for old, new in zip(running, seen, strict=True)
    ]
    return jnp.concatenate([gap.ravel() for gap in gaps]).mean()


def _is_norm(leaf: object) -> bool:
    return isinstance(leaf, Norm)
