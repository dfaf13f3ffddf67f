"""Policies for use without bisac: ONNX, StableHLO, and one that needs NumPy alone.

All are written from one graph: observations in the environment's own units in, actions in its own units out.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bisac.algos import algorithm_name
from bisac.errors import BisacError
from bisac.machine import own_version
from bisac.policies.export import numpy_form, onnx_form, stablehlo
from bisac.policies.export.describe import describe, named_arrays
from bisac.policies.export.graph import Graph
from bisac.storage import write_atomic

if TYPE_CHECKING:
    from bisac.policies.policy import Policy


class Options(NamedTuple):
    """How a policy is exported."""

    stochastic: bool = False
    """Whether noise is an input, or the action is the deterministic one."""
    opset: int = 18
    """The version of ONNX's operators."""
    platforms: tuple[str, ...] = ("cpu", "cuda", "tpu")
    """The platforms that StableHLO is lowered for."""


class Format(NamedTuple):
    """A form that a policy can have outside."""

    suffix: str
    """How its file's name ends."""
    files: Callable[[Graph, dict[str, str], Path, Options], dict[Path, bytes]]
    """Returns the contents of its files, of which the first has the path given."""


FORMATS = {
    "onnx": Format(".onnx", lambda graph, known, path, how: {path: onnx_form.written(graph, known, how.opset)}),
    "stablehlo": Format(
        ".stablehlo", lambda graph, known, path, how: stablehlo.files(graph, known, path, how.platforms)
    ),
    "numpy": Format(".npz", lambda graph, known, path, how: numpy_form.files(graph, known, path)),  # noqa: ARG005
}
"""The forms by name."""


def format_of(name: str | None, path: Path | None) -> Format:
    """Return the form of this name, or the one that the file's ending tells."""
    by_suffix = {form.suffix: known for known, form in FORMATS.items()}
    name = name or (by_suffix.get(path.suffix) if path else None)
    if name not in FORMATS:
        endings = ", ".join(f"{known} ({form.suffix})" for known, form in FORMATS.items())
        told = f"the name {path} does not tell the format" if path else "say which format"
        wrong = f"there is no format '{name}'" if name else told
        raise BisacError(f"{wrong}; there are {endings}.")
    return FORMATS[name]


def exported_files(stem: Path) -> list[Path]:
    """Return all files that forms of a policy of this name, which has no ending, consist of."""
    endings = [form.suffix for form in FORMATS.values()] + [".stablehlo.json", ".py"]
    return [stem.with_name(stem.name + ending) for ending in endings]


def export_policy(
    policy: "Policy", path: Path, name: str | None, options: Options, metadata: Mapping[str, str]
) -> list[Path]:
    """Write a policy in the form of this name, or of the path's ending, and return its files."""
    form = format_of(name, path)
    if path.is_dir():
        raise BisacError(f"{path} is a folder; say which file in it, such as {path / f'policy{form.suffix}'}.")
    if not path.parent.is_dir():
        raise BisacError(f"there is no folder {path.parent} to write {path.name} into; make it first.")
    graph = describe(policy.spec, policy.actor, options.stochastic)
    files = form.files(graph, known_of(policy, options) | dict(metadata), path, options)
    write_together(files)
    return list(files)


def known_of(policy: "Policy", options: Options) -> dict[str, str]:
    """Return what an exported file says of itself."""
    spec = policy.spec
    known = {
        "environment": spec.env_id,
        "environment_arguments": json.dumps(spec.env_args),
        "observation": json.dumps(named_arrays(spec) or [spec.obs_dim]),
        "action_low": json.dumps(spec.action_low),
        "action_high": json.dumps(spec.action_high),
        "algorithm": algorithm_name(policy.algo),
        "hyperparameters": json.dumps(dataclasses.asdict(policy.algo)),
        "stochastic": json.dumps(options.stochastic),
        "written_by": f"bisac {own_version()}",
    }
    return known | ({"step": str(policy.step)} if policy.step is not None else {})


def write_together(files: Mapping[Path, bytes]) -> None:
    """Write files each at once; where one cannot be written, those that are new are taken back."""
    new = [path for path in files if not path.exists()]
    try:
        for path, content in files.items():
            write_atomic(path, content)
    except OSError as error:
        for path in new:
            path.unlink(missing_ok=True)
        raise BisacError(f"the policy cannot be written to {error.filename}: {error.strerror}.") from error
