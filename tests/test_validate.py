from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest

from bisac.errors import BisacError
from bisac.validate import require, require_types, take_whole_numbers


@dataclass(frozen=True)
class Options:
    rate: float = 0.5
    most_steps: int = 3
    widths: tuple[int, ...] = (8, 8)
    kind: Literal["a", "b"] = "a"
    limit: float | None = None
    loud: bool = False


def test_what_is_of_its_type_passes():
    require_types(Options())
    require_types(Options(rate=1, limit=2.5, widths=(), kind="b", loud=True))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rate": "1"}, "--rate must be a number, got '1'."),
        ({"rate": float("nan")}, "--rate must be a number, got nan."),
        ({"rate": True}, "--rate must be a number, got True."),
        ({"most_steps": 3.0}, "--most-steps must be a whole number, got 3.0."),
        ({"most_steps": True}, "--most-steps must be a whole number, got True."),
        ({"widths": [8, 8]}, "--widths must be a tuple of whole numbers, got [8, 8]."),
        ({"widths": (8, 0.5)}, "--widths must be a tuple of whole numbers, got (8, 0.5)."),
        ({"kind": "c"}, "--kind must be 'a' or 'b', got 'c'."),
        ({"limit": "none"}, "--limit must be a number or None, got 'none'."),
        ({"loud": 1}, "--loud must be True or False, got 1."),
    ],
)
def test_what_is_not_of_its_type_is_refused_in_a_sentence(options, sentence):
    with pytest.raises(BisacError) as refused:
        require_types(Options(**options))
    assert str(refused.value) == sentence


def test_values_are_refused_one_by_one():
    require(Options(), "positive", lambda v: v > 0, "rate", "most_steps", "widths")
    with pytest.raises(BisacError, match=r"^--most-steps must be positive, got 0\.$"):
        require(Options(most_steps=0), "positive", lambda v: v > 0, "rate", "most_steps")
    for widths in ((8, 0), ()):  # none is as wrong as a wrong one
        with pytest.raises(BisacError, match=r"^--widths must be positive"):
            require(Options(widths=widths), "positive", lambda v: v > 0, "widths")


def test_whole_numbers_may_be_floats_or_of_numpy():
    @dataclass(frozen=True)
    class Run:
        steps: Any
        seed: Any
        every: Any

    run = Run(1e6, np.int64(3), 1.5)
    take_whole_numbers(run, "steps", "seed", "every")
    assert [type(value) for value in vars(run).values()] == [int, int, float]
    assert vars(run) == {"steps": 1_000_000, "seed": 3, "every": 1.5}
