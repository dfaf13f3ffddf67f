"""Tasks that ship with bisac. Importing this registers them.

All but the goal task were made to tell the two directions of KL apart: what an action brings has a broad low hill,
which gradients lead up, and a narrow high peak far from it. A reverse KL may keep a policy on the hill; a forward KL
goes where most of exp(Q / alpha) lies. docs/environments.md says on which of them that was seen.
"""

from typing import Any, NamedTuple

import gymnasium as gym


class Shipped(NamedTuple):
    """A task of ours, as `bisac list` shows it."""

    entry_point: str
    """Where it is made; a name, so that nothing slow is imported before."""
    episode: int | None
    """Steps until an episode is cut off; None where it ends by itself."""
    summary: str
    """What is to be done."""
    args: str
    """The names of its arguments."""
    fixed: dict[str, Any] = {}  # noqa: RUF012  nobody changes it
    """Arguments that the id itself stands for."""


_PEAKS, _REACH, _GATED, _GOAL = (
    f"bisac.envs.tasks.{name}" for name in ("peaks:Peaks", "reach:GatedReach", "gated:gated_task", "goal:PointGoal")
)
_GATE = "centre width weak crossed"

SHIPPED = {
    "bisac/Peaks-v0": Shipped(
        _PEAKS,
        None,
        "find a reward's narrow high peak, far from its broad low one",
        "dims width height distance coupling shift",
    ),
    "bisac/GatedReach-v0": Shipped(_REACH, 100, "move a point to the origin by gated actuators", f"dims speed {_GATE}"),
    "bisac/GatedPendulum-v0": Shipped(
        _GATED, 200, "Pendulum-v1 with a gated motor", f"{_GATE}, and Pendulum-v1's", {"task": "Pendulum-v1"}
    ),
    "bisac/GatedHopper-v0": Shipped(
        _GATED, 1000, "Hopper-v5 with gated motors", f"{_GATE}, and Hopper-v5's", {"task": "Hopper-v5"}
    ),
    "bisac/PointGoal-v0": Shipped(_GOAL, 50, "steer a point to a goal, by a reward only there", "dims speed radius"),
}
"""The tasks by their id."""

for _id, _task in SHIPPED.items():
    gym.register(_id, entry_point=_task.entry_point, max_episode_steps=_task.episode, kwargs=_task.fixed)
