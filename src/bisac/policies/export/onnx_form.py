"""A policy as an ONNX model, written with the onnx package alone: each step of the graph is one node."""

from typing import Any

import numpy as np

from bisac.errors import BisacError
from bisac.machine import own_version
from bisac.policies.export.graph import Graph, Step

LEAST_OPSET, AXES_ARE_INPUTS = 13, 18
"""The oldest operators whose meaning is that of the graph's, and the first whose reductions take axes as an input."""


def written(graph: Graph, metadata: dict[str, str], opset: int) -> bytes:
    """Return the content of an .onnx file: named inputs and the output `action`, all with a dynamic batch."""
    try:
        import onnx
        from onnx import helper
    except ImportError as error:
        raise BisacError("ONNX needs a package more; in bisac's folder: pip install '.[export]'.") from error
    newest = onnx.defs.onnx_opset_version()
    if not LEAST_OPSET <= opset <= newest:
        raise BisacError(f"opset must be from {LEAST_OPSET} to {newest}, got {opset}.")

    def value(name: str, shape: tuple[int, ...]) -> Any:
        return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", *shape])

    output = graph.steps[-1]
    size = graph.constants[output.operands[-1]].shape  # the bound that an action is kept below
    nodes = [_node(graph, step, opset) for step in graph.steps]
    used = {name for node in nodes for name in node.input}
    constants = [onnx.numpy_helper.from_array(array, name) for name, array in graph.constants.items() if name in used]
    inputs = [value(name, shape) for name, shape in graph.inputs.items()]
    body = helper.make_graph(nodes, "policy", inputs, [value(output.name, size)], constants)
    imports = [helper.make_opsetid("", opset)]
    model = helper.make_model(
        body,
        opset_imports=imports,
        ir_version=helper.find_min_ir_version_for(imports),
        producer_name="bisac",
        producer_version=own_version(),
        doc_string="Observations in the environment's own units in, actions in its own units out.",
    )
    helper.set_model_props(model, metadata)
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString(deterministic=True)


def _node(graph: Graph, step: Step, opset: int) -> Any:
    from onnx import helper

    attributes: dict[str, Any] = {}
    operands = list(step.operands)
    if step.operation in ("Softmax", "Concat"):
        attributes = {"axis": -1}
    elif step.operation.startswith("Reduce") and opset < AXES_ARE_INPUTS:
        attributes = {"axes": np.ravel(graph.constants[operands.pop()]).tolist()}
    return helper.make_node(step.operation, operands, [step.name], step.name, **attributes)
