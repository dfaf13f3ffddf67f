"""A model with its optimiser's state: what a gradient step replaces."""

from collections.abc import Callable
from typing import Generic, TypeVar

import equinox as eqx
import jax
import optax
from jaxtyping import Array, Float, PyTree

Model = TypeVar("Model")
Aux = TypeVar("Aux")


class Learner(eqx.Module, Generic[Model]):
    """A model and the state of the optimiser that trains it."""

    model: Model
    opt_state: PyTree[Array]

    @staticmethod
    def init(model: Model, optimiser: optax.GradientTransformation) -> "Learner[Model]":
        """A model about to be trained."""
        return Learner(model, optimiser.init(model))  # pyright: ignore[reportArgumentType]

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
        return Learner(model, opt_state), value, aux
