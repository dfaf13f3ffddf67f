"""The gate's map beside a naive one, and what it must keep within reach."""

import numpy as np
import pytest

from bisac.envs.tasks.gate import Gate
from bisac.errors import BisacError

GATES = [
    Gate(),
    Gate(crossed=False),
    Gate(centre=0.9, width=0.1, weak=0.3),
    Gate(centre=0.5, width=0.5, weak=0.2, crossed=False),
    Gate(weak=0.0),
    Gate(centre=0.6, width=0.02, weak=1.0),
]


def naive(gate, command):
    """The response as the docstring has it: weak times the command, and in a detent part of the way to full."""
    size, sign = abs(command), 1.0 if command >= 0 else -1.0
    full = -1.0 if gate.crossed else 1.0
    inside = 1.0 - abs(size - gate.centre) / gate.width
    if inside <= 0.0:
        return gate.weak * command
    foot = gate.centre - gate.width if size < gate.centre else gate.centre + gate.width
    return sign * ((1.0 - inside) * gate.weak * foot + inside * full)


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


def test_weak_pushes_lead_away_from_the_crossed_detents():
    gate = Gate(centre=0.7, width=0.1, weak=0.2)
    np.testing.assert_allclose(gate.response(np.array([-1.0, -0.7, -0.3, 0.0, 0.3, 0.7, 1.0])),
                               [-0.2, 1.0, -0.06, 0.0, 0.06, -1.0, 0.2])  # fmt: skip
    assert gate.command(np.array([0.05])) == [0.25], "a gentle push needs no detent"


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"centre": 0.0}, "centre must be a number 0.01 or more and at most 0.99, got 0.0."),
        ({"centre": 1.0}, "centre must be a number 0.01 or more and at most 0.99, got 1.0."),
        ({"width": 0.4}, "width must be a number above 0 and at most 0.3, got 0.4."),
        ({"width": 0.0}, "width must be a number above 0 and at most 0.3, got 0.0."),
        ({"weak": 1.5}, "weak must be a number 0 or more and at most 1, got 1.5."),
        ({"weak": float("nan")}, "weak must be a number 0 or more and at most 1, got nan."),
    ],
)
def test_impossible_gates_are_refused(kwargs, message):
    with pytest.raises(BisacError) as refused:
        Gate(**kwargs)
    assert str(refused.value) == message
