"""The gate's map beside a naive one, and what it must keep within reach."""

import numpy as np
import pytest

from bisac.envs.tasks.gate import Gate
from bisac.errors import BisacError

GATES = [
    Gate(),
    Gate(centre=0.9, width=0.1, weak=0.4),
    Gate(centre=0.6, width=0.3, weak=0.2),
    Gate(crossed=True),
    Gate(weak=0.0),
    Gate(weak=0.0, crossed=True),
    Gate(centre=0.6, width=0.02, weak=1.0),
]


def naive(gate, command):
    """The response as the docstring has it: a triangle for the hill, and one for the detent."""
    size, sign = abs(command), 1.0 if command >= 0 else -1.0
    half = (gate.centre - gate.width) / 2
    hill = gate.weak * max(0.0, 1.0 - abs(size - half) / half)
    detent = max(0.0, 1.0 - abs(size - gate.centre) / gate.width)
    return sign * (hill - detent if gate.crossed else hill + detent)


@pytest.mark.parametrize("gate", GATES)
def test_response_is_that_of_a_naive_loop(gate):
    commands = np.linspace(-1.0, 1.0, 4001)
    np.testing.assert_allclose(gate.response(commands), [naive(gate, u) for u in commands], atol=1e-12)
    np.testing.assert_array_equal(gate.response(commands.reshape(-1, 1))[:, 0], gate.response(commands))


@pytest.mark.parametrize("gate", GATES)
def test_every_response_has_a_command(gate):
    responses = np.linspace(-1.0, 1.0, 1001)
    commands = gate.command(responses)
    assert np.abs(commands).max() <= 1.0
    np.testing.assert_allclose(gate.response(commands), responses, atol=1e-12)


def test_small_commands_are_answered_weakly_and_narrow_bands_fully():
    gate = Gate(centre=0.8, width=0.1, weak=0.2)
    commands = np.array([-1.0, -0.8, -0.35, 0.0, 0.35, 0.6, 0.7, 0.75, 0.8, 0.9, 1.0])
    expected = [0.0, -1.0, -0.2, 0.0, 0.2, 0.2 * 2 / 7, 0.0, 0.5, 1.0, 0.0, 0.0]
    np.testing.assert_allclose(gate.response(commands), expected, atol=1e-12)
    crossed = Gate(centre=0.8, width=0.1, weak=0.2, crossed=True)
    np.testing.assert_allclose(crossed.response(np.array([-0.8, -0.35, 0.35, 0.8])), [1.0, -0.2, 0.2, -1.0])
    assert gate.command(np.array([0.1])) == pytest.approx([0.175]), "a gentle push needs no detent"


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"centre": 0.0}, "centre must be a number 0.1 or more and at most 0.95, got 0.0."),
        ({"centre": 0.99}, "centre must be a number 0.1 or more and at most 0.95, got 0.99."),
        ({"width": 0.4}, "width must be a number above 0 and at most 0.2, got 0.4."),
        ({"width": 0.0}, "width must be a number above 0 and at most 0.2, got 0.0."),
        ({"weak": 1.5}, "weak must be a number 0 or more and at most 1, got 1.5."),
        ({"weak": float("nan")}, "weak must be a number 0 or more and at most 1, got nan."),
    ],
)
def test_impossible_gates_are_refused(kwargs, message):
    with pytest.raises(BisacError) as refused:
        Gate(**kwargs)
    assert str(refused.value) == message
