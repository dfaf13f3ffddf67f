"""A policy for a machine that has NumPy only: arrays and program in one .npz, and the Python file that runs it."""

import io
import json
from pathlib import Path

import numpy as np

from bisac.errors import BisacError
from bisac.policies.export import standalone
from bisac.policies.export.graph import Graph


def files(graph: Graph, metadata: dict[str, str], path: Path) -> dict[Path, bytes]:
    """Return the contents of the two files."""
    if path.suffix != ".npz":
        raise BisacError(f"{path} must end in .npz; a .py of the same name is written beside it.")
    if not path.stem.isidentifier():
        raise BisacError(f"Python cannot import a file called {path.stem}.py; use letters, digits and _ only.")
    script, ours = path.with_suffix(".py"), Path(standalone.__file__).read_bytes()
    if script.is_file() and script.read_bytes().partition(b"\n")[0] != ours.partition(b"\n")[0]:
        raise BisacError(f"{script} is not what bisac exported; move it away, or choose another file with --out.")
    return {path: packed(graph, metadata), script: ours}


def packed(graph: Graph, metadata: dict[str, str]) -> bytes:
    """Return the content of the .npz."""
    buffer = io.BytesIO()
    program = json.dumps(graph.program() | {"metadata": metadata})
    np.savez(buffer, allow_pickle=False, program=np.asarray(program), **graph.constants)
    return buffer.getvalue()
