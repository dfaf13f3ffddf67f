r"""The gate: what an actuator gives when it answers fully only in narrow bands of its command.

Valves that stick and cheap servos are like that. Commands lie in [-1, 1]. A small one is answered weakly: the response
is a broad hill of height `weak`. Where it has come down to nothing a detent begins, a narrow band around `centre` in
which the actuator gives all it can; beyond that it is dead. In between the response is linear; it is odd:

     1 |                                  /\
       |                                 /  \
  weak |                      __--^--__ /    \
     0 |--\    /--__     __--'         '      '--
       |   \  /     ''v''
    -1 |    \/
      -1  -centre         0             centre  1

So the gradient at small commands leads up the hill and no further. Crossed, the two detents change places: the way from
the hill to the detent that pushes the same way leads through commands that push the other way. Every response from -1
to 1 has a command: what a task lets be done, its gated form does too.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bisac.envs.tasks.arguments import flag, number


@dataclass(frozen=True)
class Gate:
    """How an actuator responds to its command: weakly, but for two narrow detents. Works on arrays of any shape."""

    centre: float = 0.8
    """The size of the commands that are answered fully."""
    width: float = 0.1
    """How far from the centre a detent ends, on either side."""
    weak: float = 0.3
    """The largest response to commands outside of the detents; it is at (centre - width) / 2."""
    crossed: bool = False
    """Whether the detents are on the other side: large positive commands give the full negative response."""

    def __post_init__(self):
        number("centre", self.centre, 0.1, 0.95)
        number("width", self.width, 0, min(self.centre / 2, 1 - self.centre), above=True)
        number("weak", self.weak, 0, 1)
        flag("crossed", self.crossed)

    def response(self, command: np.ndarray) -> np.ndarray:
        """Return what commands in [-1, 1] bring about, each in [-1, 1]."""
        return np.interp(command, *self._knots)

    def command(self, response: np.ndarray) -> np.ndarray:
        """Return commands that bring about these responses in [-1, 1]: the smallest ones where several do."""
        begin, size = self.centre - self.width, np.abs(response)
        gentle = size * begin / 2 / (self.weak or 1.0)
        firm = (begin + self.width * size) * self._side
        return np.sign(response) * np.where(size <= self.weak, gentle, firm)

    @property
    def _side(self) -> float:
        """The response to the command at the centre of the detent of positive commands."""
        return -1.0 if self.crossed else 1.0

    @cached_property
    def _knots(self) -> tuple[np.ndarray, np.ndarray]:
        """The commands between which the response is linear, and the responses there."""
        begin, end = self.centre - self.width, self.centre + self.width
        commands = np.array([begin / 2, begin, self.centre, end])
        responses = np.array([self.weak, 0.0, self._side, 0.0])
        return np.concatenate([-commands[::-1], commands]), np.concatenate([-responses[::-1], responses])
