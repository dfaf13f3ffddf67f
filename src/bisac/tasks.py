"""The tasks that ship with bisac, for Python: `gated` gates the actuators of any task. Importing it registers them."""

from bisac.envs.tasks import SHIPPED
from bisac.envs.tasks.gate import Gate
from bisac.envs.tasks.gated import Gated, gated

__all__ = ["SHIPPED", "Gate", "Gated", "gated"]
