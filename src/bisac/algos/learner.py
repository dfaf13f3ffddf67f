"""A model with all that its training carries along: what one gradient step takes, and what it gives back.

Nothing here knows what the model is for, or where its loss comes from.
"""

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
    """The mean so far, fixed at the mean of its running moments."""
    steps: Int[Array, ""]
    """Steps that were averaged so far."""

    def moved(self, model: Model, share: float) -> "Average[Model]":
        """Return the average with one more step's model in it; it is over about that share of all steps so far."""
        rate = 1.0 / (1.0 + share * self.steps.astype(jnp.float32))
        return Average(jax.tree.map(lambda mean, new: mean + rate * (new - mean), self.model, model), self.steps + 1)


class Learner(eqx.Module, Generic[Model]):
    """A model, the state of the optimiser that trains it, its running moments and its average."""

    model: Model
    """The model as the optimiser sees it: without moments in its normalisations."""
    opt_state: PyTree[Array]
    """The optimiser's own state."""
    moments: tuple[Moments, ...] = ()
    """Running moments of the model's normalisations, in the order of its tree; none in a classic model."""
    average: Average[Model] | None = None
    """The model's mean over its last steps; None where it is not averaged."""

    @staticmethod
    def init(model: Model, optimiser: optax.GradientTransformation, averaged: bool = False) -> "Learner[Model]":
        """Return the learner of a model that is about to be trained, and averaged if so told."""
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

    def step(
        self,
        optimiser: optax.GradientTransformation,
        loss: Callable[[Model], tuple[Float[Array, ""], Aux]],
        scale: float | Float[Array, ""] = 1.0,
    ) -> tuple["Learner[Model]", Float[Array, ""], Aux]:
        """Take one gradient step on `loss`, which returns its value and whatever else it found on the way.

        `scale` multiplies the step, as an annealed learning rate does. Returned are the learner after the step, and
        what the loss returned before it.
        """
        (value, aux), gradient = jax.value_and_grad(loss, has_aux=True)(self.model)
        with jax.numpy_dtype_promotion("standard"):  # optax raises floats to its integer counter
            updates, opt_state = optimiser.update(gradient, self.opt_state)
        model = jax.tree.map(lambda parameter, step: parameter + scale * step, self.model, updates)
        return Learner(model, opt_state, self.moments, self.average), value, aux

    def observed(self, seen: tuple[Moments, ...], share: float = 0.0) -> "Learner[Model]":
        """Return the learner that has taken note of a step: of the batch that it was on, and of where it led.

        The running moments move towards those of the batch, `seen`. Where the model is averaged, the present one joins
        the average, which is over about that `share` of all its steps.
        """
        moments = moved(self.moments, seen)
        average = None if self.average is None else self.average.moved(fixed(self.model, moments), share)
        return Learner(self.model, self.opt_state, moments, average)
