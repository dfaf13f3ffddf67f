"""Hyperparameters for tasks on which the defaults are known to be poor, with the reason beside each.

Gamma belongs to the task, not to the algorithm: with it the question changes, so all algorithms get the same. Nothing
here knows the algorithms but by name.
"""

import re
from typing import Any, Literal, NamedTuple, get_args

from bisac.errors import BisacError

Preset = Literal["auto", "fast", "paper", "none"]
"""Where hyperparameters start from: what suits the task; that, and few updates a step (for simulators that cost less
than an update); that, and the paper's algorithm to the letter; or the plain defaults."""

PRESETS: dict[str, Preset] = {name: name for name in get_args(Preset)}
"""The presets by what users type."""

GAMMA: dict[str, float] = {
    "Swimmer": 0.999,  # at 0.99 SAC stalls near 44, at 0.999 published agents pass 340: a stroke pays late
    "GatedPendulum": 0.9,  # as the task that it gates
    "pendulum": 0.9,  # classic/pendulum, the same task on the device
    "Pendulum": 0.9,  # at 0.99 PPO hardly learns it (published: -1142 after 8M steps); at 0.9 the others do too
}
"""The discount of the tasks for which 0.99 is not right, by the task's name without its version."""

LATE_START = {"learning_starts": 10_000}  # DDPG and TD3 rest on a wide first memory: published runs take 10k to 25k

HYPERPARAMETERS: dict[str, dict[str, dict[str, Any]]] = {
    "ddpg": dict.fromkeys(("Hopper", "HalfCheetah", "Walker2d", "Ant", "Humanoid", "HumanoidStandup"), LATE_START),
    "td3": dict.fromkeys(("Hopper", "HalfCheetah", "Walker2d", "Ant", "Humanoid", "HumanoidStandup"), LATE_START),
    "ppo": {
        # Sparse landings and long episodes: longer rollouts and traces, and an entropy bonus.
        "LunarLanderContinuous": {
            "rollout": 16_384, "minibatches": 256, "epochs": 4, "gae_lambda": 0.98, "entropy_weight": 0.01,
        },
        "BipedalWalker": {"rollout": 16_384, "minibatches": 256, "clip": 0.18},
    },
    "a2c": {
        "LunarLanderContinuous": {"gae_lambda": 0.9, "value_weight": 0.4},
        "BipedalWalker": {"gae_lambda": 0.9, "value_weight": 0.4, "learning_rate": 9.6e-4},
    },
}  # fmt: skip
"""What differs from an algorithm's defaults, by its name and then the task's."""

FAST: dict[str, dict[str, Any]] = {
    # Of what was tried, the one that learned to hop in every seed: results/updates-per-step.
    "sac": {"utd": 0.125},
}
"""What the fast preset sets, by the algorithm's name."""

FAST_ENVS = 8
"""Environments of the fast preset."""

CLASSIC: dict[str, Any] = {"critic_norm": "none", "critic_lr": 3e-4}
"""Target networks, and one learning rate for all networks, as SAC was published."""

LITERAL: dict[str, Any] = CLASSIC | {
    "decomposition": "joint",  # the paper fits nothing but the sum sum_i Q_i + U
    "encoder": (),  # each subnetwork takes the state itself
    "embedding": (256,),
    "subnetwork": (256, 256),  # as wide as the auxiliary network
}
"""The paper's VDN-a critic: its text and figure, without what we made cheaper or easier to learn."""

PAPER: dict[str, dict[str, Any]] = {
    # Its loss is KL(pi || q) plus L_f, with variances, at every state and all the time.
    "bisac": LITERAL
    | {"critic": "vdn-a", "epsilon": 1.0, "epsilon_half_life": "none", "margin": "none", "spread": "var"},
    "forward-sac": LITERAL,
    "forward-sac-actor": LITERAL | {"spread": "var"},
    "sac": CLASSIC,
}
"""What the paper's preset sets, by the algorithm's name; docs/reproduction.md has the reason for each choice."""

PAPER_ENVS = 1
"""Environments of the paper's preset."""


class Start(NamedTuple):
    """Where a run starts from unless its user says otherwise."""

    hyperparameters: dict[str, Any]
    """What differs from the algorithm's defaults."""
    num_envs: int | None = None
    """Environments stepped together; None leaves that to the algorithm."""

    def listed(self) -> str:
        """Return what it sets as a line for people."""
        return listed(self.hyperparameters | ({"num_envs": self.num_envs} if self.num_envs else {}))


def chosen(which: Preset, env_id: str | None, algo: str) -> Start:
    """Return what a preset sets for an algorithm on a task; without an id there is no task that it knows."""
    if which == "none":
        return Start({})
    for_task = preset(env_id, algo) if env_id else {}
    if which == "auto":
        return Start(for_task)
    table, num_envs = (FAST, FAST_ENVS) if which == "fast" else (PAPER, PAPER_ENVS)
    if algo not in table:
        raise BisacError(f"there is no {which} preset for {algo}; there is one for {', '.join(table)}.")
    return Start(for_task | table[algo], num_envs)


def task_name(env_id: str) -> str:
    """Return a task's name without the module, the namespace and the version of its id."""
    return re.sub(r"-v\d+$", "", env_id.rpartition(":")[2].rpartition("/")[2])


def preset(env_id: str, algo: str) -> dict[str, Any]:
    """Return what differs from an algorithm's defaults on a task, whatever the task's version."""
    task = task_name(env_id)
    gamma = {"gamma": GAMMA[task]} if task in GAMMA else {}
    return gamma | HYPERPARAMETERS.get(algo, {}).get(task, {})


def listed(values: dict[str, Any]) -> str:
    """Return names and values as a line for people."""
    return ", ".join(f"{name} {value}" for name, value in values.items())
