"""A model with its optimiser's state, running moments and average: what a gradient step replaces."""

from collections.abc import Callable
from typing import Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PyTree

from bisac.nets.normalisation import Moments, fixed, fresh_moments, moved

Model = TypeVar("Model")
Aux = TypeVar("Aux")


class Average(eqx.Module, Generic[Model]):
    """The mean of a model over its last steps, with its running moments: single steps jitter, their mean does not."""

    model: Model
    steps: Int[Array, ""]
    """Steps that were averaged so far."""

    def moved(self, model: Model, share: float) -> "Average[Model]":
        """With one more step; the mean is over about that share of all steps so far."""
        rate = 1.0 / (1.0 + share * self.steps.astype(jnp.float32))
        return Average(jax.tree.map(lambda mean, new: mean + rate * (new - mean), self.model, model), self.steps + 1)


class Learner(eqx.Module, Generic[Model]):
    """A model and the state of the optimiser that trains it."""

    model: Model
    opt_state: PyTree[Array]
    moments: tuple[Moments, ...] = ()
    """Running moments of the model's normalisations, in the order of its tree; none in a classic model."""
    average: Average[Model] | None = None
    """None where the model is not averaged."""

    @staticmethod
    def init(model: Model, optimiser: optax.GradientTransformation, averaged: bool = False) -> "Learner[Model]":
        """A model about to be trained."""
        opt_state, moments = optimiser.init(model), fresh_moments(model)  # pyright: ignore[reportArgumentType]
        # Not the same buffers: the state is donated to the compiled step.
        copy = jax.tree.map(jnp.copy, fixed(model, moments))
        return Learner(model, opt_state, moments, Average(copy, jnp.zeros((), jnp.int32)) if averaged else None)

    @property
    def fixed(self) -> Model:
        """The model as everything but its own training sees it: at its running moments."""
        return fixed(self.model, self.moments)

    @property
    def averaged(self) -> Model:
        """The mean of the model over its last steps; the model itself where it is not averaged."""
        return self.fixed if self.average is None else self.average.model

    def observed(self, seen: tuple[Moments, ...]) -> "Learner[Model]":
        """With the running moments moved towards those of a batch."""
        return Learner(self.model, self.opt_state, moved(self.moments, seen), self.average)

    def averaging(self, share: float) -> "Learner[Model]":
        """With the present model in the average, which is over about that share of all its steps."""
        if self.average is None:
            return self
        return Learner(self.model, self.opt_state, self.moments, self.average.moved(self.fixed, share))

    def step(
        self,
        optimiser: optax.GradientTransformation,
        loss: Callable[[Model], tuple[Float[Array, ""], Aux]],
        scale: float | Float[Array, ""] = 1.0,
    ) -> tuple["Learner[Model]", Float[Array, ""], Aux]:
        """One gradient step on `loss`, which returns its value and whatever else it found on the way.

        `scale` multiplies the step, as an annealed learning rate does.
        """
        (value, aux), gradient = jax.value_and_grad(loss, has_aux=True)(self.model)
        with jax.numpy_dtype_promotion("standard"):  # optax raises floats to its integer counter
            updates, opt_state = optimiser.update(gradient, self.opt_state)
        model = jax.tree.map(lambda parameter, step: parameter + scale * step, self.model, updates)
        return Learner(model, opt_state, self.moments, self.average), value, aux
