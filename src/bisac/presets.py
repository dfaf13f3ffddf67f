"""Hyperparameters for tasks on which the defaults are known to be poor, with the reason beside each.

Gamma belongs to the task, not to the algorithm: with it the question changes, so all algorithms get the same. Nothing
here knows the algorithms but by name.
"""

from typing import Any, Literal, NamedTuple

from bisac.errors import BisacError

Preset = Literal["auto", "fast", "none"]
"""Where hyperparameters start from: what suits the task; that, and few updates a step (for simulators that cost less
than an update); or the plain defaults."""

GAMMA: dict[str, float] = {
    "Swimmer": 0.999,  # at 0.99 SAC stalls near 44, at 0.999 published agents pass 340: a stroke pays late
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
    # Few updates, each of them for all networks: one seed so far, results/updates-per-step.
    "sac": {"utd": 0.125, "policy_delay": 1},
}
"""What the fast preset sets, by the algorithm's name."""

FAST_ENVS = 8
"""Environments of the fast preset."""


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
    if algo not in FAST:
        raise BisacError(f"there is no fast preset for {algo}; there is one for {', '.join(FAST)}.")
    return Start(for_task | FAST[algo], FAST_ENVS)


def preset(env_id: str, algo: str) -> dict[str, Any]:
    """Return what differs from an algorithm's defaults on a task, whatever the task's version."""
    task = env_id.rpartition(":")[2].rpartition("/")[2].rpartition("-v")[0]
    gamma = {"gamma": GAMMA[task]} if task in GAMMA else {}
    return gamma | HYPERPARAMETERS.get(algo, {}).get(task, {})


def listed(values: dict[str, Any]) -> str:
    """Return names and values as a line for people."""
    return ", ".join(f"{name} {value}" for name, value in values.items())
