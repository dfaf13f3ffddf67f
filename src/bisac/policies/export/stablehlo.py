"""A policy as StableHLO, serialised by jax.export for several platforms and any size of batch."""

import json
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
from jax import export
from jaxtyping import Array

from bisac.errors import BisacError
from bisac.policies.export.graph import Graph
from bisac.policies.export.standalone import operations, run

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
"""The platforms that JAX lowers for."""


def files(graph: Graph, metadata: dict[str, str], path: Path, platforms: Sequence[str]) -> dict[Path, bytes]:
    """Return the contents of the program and of the metadata beside it, for which the program has no place."""
    known = {"inputs": {name: ["batch", *shape] for name, shape in graph.inputs.items()}, **metadata}
    text = json.dumps(known | {"platforms": list(platforms)}, indent=2) + "\n"
    return {path: written(graph, platforms), path.with_name(f"{path.name}.json"): text.encode()}


def written(graph: Graph, platforms: Sequence[str]) -> bytes:
    """Return the program: a function of the graph's inputs in their order, each with a batch's axis in front."""
    if bad := [name for name in platforms if name not in PLATFORMS] or ([""] if not platforms else []):
        raise BisacError(f"there is no platform '{bad[0]}'; there are {', '.join(PLATFORMS)}.")
    try:
        import flatbuffers  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise BisacError("StableHLO needs a package more; in bisac's folder: pip install '.[export]'.") from error

    def policy(*inputs: Array) -> Array:
        values = dict(zip(graph.inputs, inputs, strict=True)) | graph.constants
        # As exact on accelerators as on the CPU; broadcasting is what the graph is described by.
        with jax.numpy_rank_promotion("allow"), jax.default_matmul_precision("highest"):
            return jnp.asarray(run(graph.steps, values, operations(jnp)))

    (batch,) = export.symbolic_shape("batch")
    shapes = [jax.ShapeDtypeStruct((batch, *shape), jnp.float32) for shape in graph.inputs.values()]
    return bytes(export.export(jax.jit(policy), platforms=tuple(platforms))(*shapes).serialize())
