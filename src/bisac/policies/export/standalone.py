"""A trained policy that needs NumPy and nothing else: this file, and the .npz of the same name beside it.

    from policy import act                  # however the two files are called
    action = act(observation)               # in the environment's own units; one observation or a batch of them

`Policy("other.npz")` is another policy of this form. One that was exported as stochastic takes noise too, drawn from
the standard normal distribution in the shape of its actions: `act(observation, noise)`.
"""

import json
from pathlib import Path

import numpy as np


def operations(xp):
    """Return the operations that a policy is made of, by name, in NumPy or in what has NumPy's interface."""

    def softmax(x):
        power = xp.exp(x - x.max(axis=-1, keepdims=True))
        return power / power.sum(axis=-1, keepdims=True)

    return {
        "Add": xp.add,
        "Sub": xp.subtract,
        "Mul": xp.multiply,
        "Div": xp.divide,
        "Max": xp.maximum,
        "Min": xp.minimum,
        "Tanh": xp.tanh,
        "Exp": xp.exp,
        "Log": xp.log,
        "MatMul": xp.matmul,
        "Relu": lambda x: xp.maximum(x, 0.0),
        "Sigmoid": lambda x: xp.exp(-xp.logaddexp(0.0, -x)),
        "Softmax": softmax,
        "ReduceMax": lambda x, axes: x.max(axis=tuple(axes.tolist()), keepdims=True),
        "ReduceMean": lambda x, axes: x.mean(axis=tuple(axes.tolist()), keepdims=True),
        "Reshape": lambda x, shape: x.reshape(shape.tolist()),
        "Concat": lambda *parts: xp.concatenate(parts, axis=-1),
    }


def run(steps, values, known):
    """Return what the last step computes; `values` holds inputs and constants by name."""
    for operation, name, operands in steps:
        values[name] = known[operation](*[values[operand] for operand in operands])
    return values[steps[-1][1]]


class Policy:
    """A policy that was read from an .npz file."""

    def __init__(self, path):
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            program = json.loads(str(arrays.pop("program")))
            self.inputs, self.steps, self.metadata = program["inputs"], program["steps"], program["metadata"]
            self.constants, self._operations = arrays, operations(np)
            self.act({name: np.zeros(shape, np.float32) for name, shape in self.inputs.items()})
        except (FileNotFoundError, PermissionError):
            raise
        except Exception as error:  # whatever a stranger's file makes the parser or the program do
            raise ValueError(f"{path} is not a policy that bisac exported, or is damaged.") from error

    def act(self, observation, noise=None):
        """Return the action for one observation, or the actions for a batch; named parts come as a dictionary."""
        given = dict(observation) if isinstance(observation, dict) else {"observation": observation}
        if noise is not None:
            given["noise"] = noise
        if given.keys() != self.inputs.keys():
            raise ValueError(f"this policy takes {', '.join(self.inputs)}; got {', '.join(given)}.")
        values = {name: np.asarray(array, np.float32) for name, array in given.items()}
        alone = all(values[name].ndim == len(shape) for name, shape in self.inputs.items())
        if alone:
            values = {name: array[None] for name, array in values.items()}
        batch = next(iter(values.values())).shape[:1]
        for name, shape in self.inputs.items():
            if values[name].shape != (*batch, *shape):
                raise ValueError(f"{name} must have the shape {tuple(shape)}, or that after a batch's size.")
        action = run(self.steps, values | self.constants, self._operations)
        return action[0] if alone else action


_own = Path(__file__).with_suffix(".npz")
act = Policy(_own).act if _own.exists() else None
