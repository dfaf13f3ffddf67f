"""Every kind of actor as a graph of steps, from observations to actions, both in the environment's own units."""

from functools import singledispatch

import jax.numpy as jnp
import numpy as np

from bisac.errors import BisacError
from bisac.nets.actors import (
    Actor,
    DeterministicActor,
    GaussianActor,
    ProjectedActor,
    TanhGaussianActor,
    UnsquashedActor,
)
from bisac.nets.scaled import LIMIT, ScaledActor
from bisac.ops.gaussian import LOG_STD_MAX, LOG_STD_MIN
from bisac.policies.export.graph import Graph
from bisac.policies.export.networks import add_curves, add_hidden, add_layer, add_mlp
from bisac.types import Spec

LAST = np.asarray([-1])
"""The last axis, over which the projection's nodes lie."""


def describe(spec: Spec, actor: Actor, stochastic: bool) -> Graph:
    """Return the policy as a graph; a stochastic one has noise, drawn from the standard normal, as its last input."""
    parts = named_arrays(spec)
    inputs = parts or {"observation": (spec.obs_dim,)}
    graph = Graph(inputs | ({"noise": (spec.action_dim,)} if stochastic else {}))
    flat = [graph.reshape(f"flat.{name}", name, int(np.prod(shape))) for name, shape in parts.items()]
    obs = graph.add("Concat", "observation.flat", *flat) if flat else "observation"
    action = _action(actor, graph, obs, "noise" if stochastic else None)
    low, high, centre, reach = spec.box
    scaled = graph.add("Add", "action.moved", graph.add("Mul", "action.scaled", action, reach), centre)
    graph.bounded("action", scaled, low, high)
    return graph


def named_arrays(spec: Spec) -> dict[str, tuple[int, ...]]:
    """Return names and shapes of the arrays of a dictionary of observations, in the order in which it is flattened.

    There are none for other observations, or where some part is no array or has a name that a graph has a use for.
    """
    kind, *of = spec.layout or ("",)
    if kind != "dict":
        return {}
    arrays = {name: part[1] for name, part in zip(*of, strict=True) if part[0] == "box"}
    clear = all(isinstance(name, str) and "." not in name and name not in ("", "action", "noise") for name in arrays)
    whole = sum(int(np.prod(shape)) for shape in arrays.values()) == spec.obs_dim
    return arrays if clear and whole else {}


@singledispatch
def _action(actor: Actor, graph: Graph, obs: str, noise: str | None) -> str:  # noqa: ARG001
    """Append what an actor computes, and return the name of its action in [-1, 1]."""
    raise BisacError(f"actors of the kind {type(actor).__name__} cannot be exported; policy.save() keeps them.")


@_action.register
def _scaled(actor: ScaledActor, graph: Graph, obs: str, noise: str | None) -> str:
    seen = actor.observations
    centred = graph.add("Sub", "normalise.centred", obs, np.asarray(seen.mean))
    divided = graph.add("Div", "normalise.divided", centred, np.asarray(seen.std))
    return _action(actor.actor, graph, graph.bounded("normalise.bounded", divided, -LIMIT, LIMIT), noise)


@_action.register
def _tanh_gaussian(actor: TanhGaussianActor, graph: Graph, obs: str, noise: str | None) -> str:
    mean, log_std = _gaussian(actor, graph, obs, noise is not None)
    return graph.add("Tanh", "actor.squashed", _drawn(graph, mean, log_std, noise))


@_action.register
def _deterministic(actor: DeterministicActor, graph: Graph, obs: str, noise: str | None) -> str:
    action = graph.add("Tanh", "actor.squashed", add_mlp(graph, "actor", actor.mlp, obs))
    if noise is None:
        return action
    moved = graph.add("Add", "explore.moved", action, graph.add("Mul", "explore.noise", noise, actor.noise))
    return graph.bounded("explore.bounded", moved, -1.0, 1.0)


@_action.register
def _unsquashed(actor: UnsquashedActor, graph: Graph, obs: str, noise: str | None) -> str:
    x = add_mlp(graph, "actor", actor.mlp, obs)
    if noise is not None:
        x = graph.add("Add", "draw.moved", x, graph.add("Mul", "draw.noise", noise, np.exp(np.asarray(actor.log_std))))
    return graph.bounded("actor.bounded", x, -1.0, 1.0)


@singledispatch
def _gaussian(actor: TanhGaussianActor, graph: Graph, obs: str, with_std: bool) -> tuple[str, str]:  # noqa: ARG001
    """Append mean and log standard deviation of x, the latter only if it is asked for, and return their names."""
    raise BisacError(f"actors of the kind {type(actor).__name__} cannot be exported; policy.save() keeps them.")


@_gaussian.register
def _network(actor: GaussianActor, graph: Graph, obs: str, with_std: bool) -> tuple[str, str]:
    mlp, x = actor.mlp, add_hidden(graph, "actor", actor.mlp, obs)
    last, dims = len(mlp.weights) - 1, mlp.biases[-1].shape[-1] // 2
    mean = add_layer(graph, "actor.mean", mlp, last, x, slice(dims))
    if not with_std:
        return mean, ""
    log_std = add_layer(graph, "actor.log_std", mlp, last, x, slice(dims, None))
    return mean, graph.bounded("actor.bounded_log_std", log_std, LOG_STD_MIN, LOG_STD_MAX)


@_gaussian.register
def _projected(actor: ProjectedActor, graph: Graph, obs: str, with_std: bool) -> tuple[str, str]:
    grid = actor.grid
    curves = add_curves(actor.marginals, graph, obs, grid)  # (batch, act, point)
    q = graph.add("Sub", "projection.centred", curves, graph.add("ReduceMax", "projection.top", curves, LAST))
    if grid.points:
        q = graph.add("MatMul", "projection.interpolated", q, grid.interpolation)
    logit = graph.add("Div", "projection.over_alpha", q, np.asarray(jnp.exp(actor.log_alpha)))
    p = graph.add("Softmax", "projection.probabilities", graph.add("Add", "projection.logits", logit, grid.log_measure))
    mean = graph.add("MatMul", "projection.mean", p, grid.nodes)
    if not with_std:
        return mean, ""
    centre = graph.add("MatMul", "projection.centre", p, grid.nodes[:, None])  # (batch, act, 1)
    apart = graph.add("Sub", "projection.apart", grid.nodes, centre)
    square = graph.add("Mul", "projection.weighed", p, graph.add("Mul", "projection.square", apart, apart))
    var = graph.add("MatMul", "projection.var", square, np.ones_like(grid.nodes))
    least = graph.add("Max", "projection.least_var", var, np.exp(2.0 * LOG_STD_MIN))
    log_std = graph.add("Mul", "projection.log_std", graph.add("Log", "projection.log_var", least), 0.5)
    return mean, graph.bounded("actor.bounded_log_std", log_std, LOG_STD_MIN, LOG_STD_MAX)


def _drawn(graph: Graph, mean: str, log_std: str, noise: str | None) -> str:
    if noise is None:
        return mean
    spread = graph.add("Mul", "draw.noise", noise, graph.add("Exp", "draw.std", log_std))
    return graph.add("Add", "draw.moved", mean, spread)
