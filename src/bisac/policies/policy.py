"""A trained policy: numpy in, numpy out, one safetensors file."""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from bisac.algos import Algorithm, algorithm_from_json, algorithm_name, module_of
from bisac.errors import BisacError
from bisac.layout import flattened, is_flat
from bisac.machine import own_version
from bisac.nets.actors import Actor
from bisac.nets.scaled import Statistics, scaled_actor
from bisac.storage import pack_arrays, read_file, unpack_arrays, unpack_metadata, write_atomic
from bisac.types import Spec, require_float32

FORMAT, VERSION = "bisac-policy", 1


class Policy:
    """What training gives: acts on NumPy observations, in the environment's own action units."""

    def __init__(self, spec: Spec, algo: Algorithm[Any], actor: Actor, seed: int = 0, step: int | None = None):
        self.spec = spec
        self.algo = algo
        self.actor = actor
        self.step = step
        """The environment steps of training that led to it, where they are known."""
        self._key = jax.random.key(seed)

    def predict(
        self,
        observation: Any,  # whatever NumPy makes an array of
        state: None = None,  # noqa: ARG002  this and the next are for scripts that serve recurrent policies too
        episode_start: np.ndarray | None = None,  # noqa: ARG002
        deterministic: bool = True,
    ) -> tuple[np.ndarray, None]:
        """Return the action for one observation of the environment, or the actions for a batch of them."""
        obs = self._vector(observation)
        if obs.ndim not in (1, 2) or obs.shape[-1] != self.spec.obs_dim:
            raise BisacError(
                f"this policy takes observations of {self.spec.obs_dim} numbers ({self.spec.env_id}), "
                f"one or a batch; got an array of shape {obs.shape}."
            )
        if deterministic and obs.ndim == 1:
            leaves, structure = self._flat_actor
            return self.spec.to_box(np.asarray(_act_alone(leaves, obs, structure))), None
        self._key, key = jax.random.split(self._key)
        action = np.asarray(_act(self.actor, jnp.atleast_2d(obs), key, not deterministic))
        scaled = self.spec.to_box(action)
        return (scaled if obs.ndim == 2 else scaled[0]), None

    @cached_property
    def _flat_actor(self) -> tuple[tuple[Array, ...], Any]:
        """The actor's arrays, and its structure: taking it apart at each call would cost more than the networks."""
        leaves, structure = jax.tree.flatten(self.actor)
        return tuple(leaves), structure

    def _vector(self, observation: Any) -> np.ndarray:
        """Return an observation, or a batch of them, flattened; one that is flat already stays as it is."""
        layout = self.spec.layout
        try:
            if layout is None or is_flat(layout, observation, self.spec.obs_dim):
                return np.asarray(observation, np.float32)
            return flattened(layout, observation)
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            takes = (
                f"arrays of {self.spec.obs_dim} numbers"
                if layout is None
                else "the environment's own, one or a batch, or flattened by gymnasium.spaces.flatten"
            )
            raise BisacError(f"this policy takes observations of {self.spec.env_id}: {takes} ({error}).") from error

    def check_fits(self, spec: Spec) -> None:
        """Refuse an environment that this policy was not trained for."""
        if (self.spec.obs_dim, self.spec.action_dim) != (spec.obs_dim, spec.action_dim):
            raise BisacError(f"this policy was trained on {self.spec.sizes} and does not fit {spec.sizes}.")

    def to_bytes(self) -> bytes:
        """Return the content of a policy file."""
        metadata = {
            "format": FORMAT,
            "version": VERSION,
            "written_by": own_version(),
            "algo": algorithm_name(self.algo),
            **module_of(self.algo),
            "settings": dataclasses.asdict(self.algo),
            "spec": dataclasses.asdict(self.spec),
            "step": self.step,
        }
        return pack_arrays(self.actor, metadata)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the policy as one safetensors file that `bisac.load` needs nothing else to read."""
        try:
            write_atomic(Path(path), self.to_bytes())
        except OSError as error:
            raise BisacError(f"the policy cannot be written to {path}: {error.strerror}.") from error

    def export(
        self,
        path: str | PathLike[str],
        format: str | None = None,  # noqa: A002  the name that the command line has for it
        *,
        stochastic: bool = False,
        opset: int = 18,
        platforms: Sequence[str] = ("cpu", "cuda", "tpu"),
        metadata: Mapping[str, str] | None = None,
    ) -> list[Path]:
        """Write the policy for use without bisac, and return the files: docs/export.md tells how each is run.

        `format` is "onnx", "stablehlo" or "numpy"; without it the name's ending (.onnx, .stablehlo, .npz) tells. A
        stochastic policy takes noise as a further input. `opset` is ONNX's, `platforms` are those of StableHLO, and
        `metadata` is written into the file beside what the policy knows of itself.
        """
        from bisac.policies.export import Options, export_policy  # its packages are an extra

        return export_policy(self, Path(path), format, Options(stochastic, opset, tuple(platforms)), metadata or {})


def load_policy(path: Path) -> Policy:
    """Read a policy file."""
    require_float32()
    content = read_file(path)
    metadata = unpack_metadata(content, path)
    if metadata.get("format") != FORMAT:
        raise BisacError(f"{path} is not a bisac policy file.")
    if metadata.get("version") != VERSION:
        written_by = metadata.get("written_by", "an unknown version")
        raise BisacError(
            f"{path} has policy format {metadata.get('version')}, of bisac {written_by}; this is bisac "
            f"{own_version()}, which reads format {VERSION}."
        )
    try:
        spec = Spec.from_json(metadata["spec"])
        algo = algorithm_from_json(metadata["algo"], metadata["settings"], metadata.get("algo_module"))
        step = None if metadata.get("step") is None else int(metadata["step"])
        key, obs = jax.random.key(0), jax.ShapeDtypeStruct((1, spec.obs_dim), jnp.float32)
        skeleton = jax.eval_shape(partial(_fresh_actor, algo, spec), key)
        jax.eval_shape(partial(_act, explore=False), skeleton, obs, key)
    except Exception as error:  # whatever a stranger's settings make of the networks
        raise BisacError(f"{path} has settings that this bisac does not know: {str(error).rstrip('.')}.") from error
    return Policy(spec, algo, unpack_arrays(content, skeleton, path), step=step)


def _fresh_actor(algo: Algorithm[Any], spec: Spec, key: Key[Array, ""]) -> Actor:
    observations = Statistics.init(spec.obs_dim) if algo.normalise_observations else None
    return scaled_actor(algo.policy(algo.init(spec, key)), observations)


@partial(jax.jit, static_argnames="explore")
def _act(actor: Actor, obs: Float[Array, "batch obs"], key: Key[Array, ""], explore: bool) -> Float[Array, "batch act"]:
    return actor.act(obs, key, explore)


@partial(jax.jit, static_argnames="structure")
def _act_alone(leaves: tuple[Array, ...], obs: Float[Array, "obs"], structure: Any) -> Float[Array, "act"]:
    """Return the deterministic action for one observation, by an actor that was taken apart."""
    actor: Actor = jax.tree.unflatten(structure, leaves)
    return actor.act(obs[None], jax.random.key(0), False)[0]  # a key that nothing is drawn by
