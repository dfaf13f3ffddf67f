r"""The gate: what an actuator gives when it answers fully only in narrow bands of its command.

Valves that stick and cheap servos are like that. A command u in [-1, 1] has the response `weak` times u, but for two
detents at |u| = `centre`: there it rises linearly to full strength, within `width` on either side. Crossed, the detent
that pushes forwards lies among the commands that push weakly backwards, so that weak pushes lead away from it:

     1 |      /\
       |     /  \
     0 |----/----\-------------------\----/----
       |                              \  /
    -1 |                               \/
      -1    -0.7          0           0.7     1

Every response from -1 to 1 has a command, so what a task lets be done, its gated form does too.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bisac.envs.tasks.arguments import flag, number


@dataclass(frozen=True)
class Gate:
    """How an actuator responds to its command: weakly, but for two narrow detents. Works on arrays of any shape."""

    centre: float = 0.7
    """The size of the commands that are answered fully."""
    width: float = 0.05
    """How far from the centre a detent ends, on either side."""
    weak: float = 0.3
    """The response outside of the detents, as a fraction of the command."""
    crossed: bool = True
    """Whether the detent of positive commands gives the full negative response, and the other the positive one."""

    def __post_init__(self):
        number("centre", self.centre, 0.01, 0.99)
        number("width", self.width, 0, min(self.centre, 1 - self.centre), above=True)
        number("weak", self.weak, 0, 1)
        flag("crossed", self.crossed)

    def response(self, command: np.ndarray) -> np.ndarray:
        """Return what commands in [-1, 1] bring about, each in [-1, 1]."""
        return np.interp(command, *self._knots)

    def command(self, response: np.ndarray) -> np.ndarray:
        """Return commands that bring about these responses in [-1, 1]: the smallest ones where several do."""
        side = -1.0 if self.crossed else 1.0
        begin = max(self.centre - self.width, 0.0)
        edge = self.weak * begin  # the largest response before a detent begins
        size = np.abs(response)
        gentle = size / self.weak if self.weak else size
        firm = begin + self.width * (size - side * edge) / (1 - side * edge)
        return np.sign(response) * np.where(size <= edge, gentle, side * firm)

    @cached_property
    def _knots(self) -> tuple[np.ndarray, np.ndarray]:
        """The commands between which the response is linear, and the responses there."""
        begin, end = max(self.centre - self.width, 0.0), min(self.centre + self.width, 1.0)
        commands = np.array([begin, self.centre, end, 1.0])
        responses = self.weak * commands
        responses[1] = -1.0 if self.crossed else 1.0
        return np.concatenate([-commands[::-1], commands]), np.concatenate([-responses[::-1], responses])
